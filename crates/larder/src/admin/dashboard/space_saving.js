// Which values came most, with a bounded number of counters: Space-Saving (Metwally and others, 2005), as `larder top` counts. When there is no
// counter left, a new value takes the place of the one that has the least and begins with its count; `error` is how much of a count may be that.

export class SpaceSaving {
  constructor(most) {
    this.most = most;
    this.counters = new Map();
  }

  // Adds to the value's counter and hands it out.
  add(value) {
    let counter = this.counters.get(value);
    if (!counter) {
      const least = this.counters.size < this.most ? null : this.least();
      if (least) this.counters.delete(least.value);
      counter = { value, requests: least ? least.requests : 0, error: least ? least.requests : 0 };
      this.counters.set(value, counter);
    }
    counter.requests++;
    return counter;
  }

  least() {
    let least = null;
    for (const counter of this.counters.values()) if (!least || counter.requests < least.requests) least = counter;
    return least;
  }

  all() {
    return [...this.counters.values()];
  }
}
