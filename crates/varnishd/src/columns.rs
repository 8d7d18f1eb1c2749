//! Rows of cells beneath one another, as far apart as scripts that cut them expect. The last cell of a row has nothing
//! behind it.

const BEHIND_FIRST: usize = 3;
const BEHIND_OTHERS: usize = 4;

pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..).map_while(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                let gap = if column == 0 { BEHIND_FIRST } else { BEHIND_OTHERS };
                text.extend(std::iter::repeat_n(' ', widths[column] + gap - cell.chars().count()));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_where_varnish_puts_them() {
        let rows = [
            vec!["active", "auto", "warm", "     0", "boot"],
            vec!["available", "label", "warm", "     0", "l", "->", "boot"],
        ];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let expect = "active      auto     warm         0    boot\n\
                      available   label    warm         0    l       ->    boot\n";
        assert_eq!(columns(&rows), expect);
    }
}
