//! The stable sort of Go's library. Caddy sorts by an order that is none of all its directives: which of two comes first goes by what the
//! sort compares, and in which turn.

/// So many are sorted by insertion.
const BLOCK: usize = 20;

/// Sorts as `sort.SliceStable` does.
pub fn sort<T>(all: &mut [T], less: &dyn Fn(&T, &T) -> bool) {
    let count = all.len();
    for start in (0..count).step_by(BLOCK) {
        insert(&mut all[start..count.min(start + BLOCK)], less);
    }
    let mut size = BLOCK;
    while size < count {
        let mut start = 0;
        while start + size < count {
            merge(all, (start, start + size, count.min(start + 2 * size)), less);
            start += 2 * size;
        }
        size *= 2;
    }
}

fn insert<T>(all: &mut [T], less: &dyn Fn(&T, &T) -> bool) {
    for from in 1..all.len() {
        let mut at = from;
        while at > 0 && less(&all[at], &all[at - 1]) {
            all.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// The first of a range that is none of those that come first.
fn parted(mut from: usize, mut to: usize, comes_first: &dyn Fn(usize) -> bool) -> usize {
    while from < to {
        let half = usize::midpoint(from, to);
        if comes_first(half) { from = half + 1 } else { to = half }
    }
    from
}

/// SymMerge of Kim and Kutzner: two sorted neighbours, the second from `middle` on.
fn merge<T>(all: &mut [T], (start, middle, end): (usize, usize, usize), less: &dyn Fn(&T, &T) -> bool) {
    if middle - start == 1 {
        let to = parted(middle, end, &|at| less(&all[at], &all[start]));
        return all[start..to].rotate_left(1);
    }
    if end - middle == 1 {
        let to = parted(start, middle, &|at| !less(&all[middle], &all[at]));
        return all[to..=middle].rotate_right(1);
    }
    let half = usize::midpoint(start, end);
    let both = half + middle;
    let (from, to) = if middle > half { (both - end, half) } else { (start, middle) };
    let first = parted(from, to, &|at| !less(&all[both - 1 - at], &all[at]));
    let last = both - first;
    if first < middle && middle < last {
        all[first..last].rotate_left(middle - first);
    }
    if start < first && first < half {
        merge(all, (start, first, half), less);
    }
    if half < last && last < end {
        merge(all, (half, last, end), less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_stay_in_their_order() {
        for count in [0, 1, 2, 19, 20, 21, 39, 41, 100, 333] {
            let mut all: Vec<(usize, usize)> = (0..count).map(|at| (at * 7919 % 13, at)).collect();
            let mut expect = all.clone();
            expect.sort_by_key(|one| one.0);
            sort(&mut all, &|one, other| one.0 < other.0);
            assert_eq!(all, expect, "{count}");
        }
    }

    /// Where 0 is neither before nor behind the others, they are not compared over it.
    #[test]
    fn what_is_no_order_is_sorted_as_go_does() {
        let less = |one: &i32, other: &i32| *one != 0 && *other != 0 && one < other;
        let mut all = [3, 0, 1, 2, 0, 1];
        sort(&mut all, &less);
        assert_eq!(all, [3, 0, 1, 2, 0, 1]);
    }
}
