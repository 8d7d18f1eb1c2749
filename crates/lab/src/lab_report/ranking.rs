//! Who is first in a row, in which metric, and who has no place at all.
//!
//! A place is shared by those whose intervals overlap: the order of two medians inside each other's luck is no order.
//! The second copy of a server, which measures the noise, takes no place.

use serde::Serialize;

use crate::results::{Cell, Estimate, LabResults, Metric};

/// The places of one cell in its row, from 1; none where it may not be ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Places {
    pub goodput: Option<usize>,
    pub server_micros_per_answer: Option<usize>,
    /// Only at a fixed rate: two servers each at its own most carry two different loads.
    pub p99: Option<usize>,
    pub bytes_per_connection: Option<usize>,
}

/// One for each of the results' cells, in their order.
pub fn places(results: &LabResults) -> Vec<Places> {
    let place = |cell: &Cell, metric: Metric| {
        let own = ranked(results, cell, metric)?;
        let others = results.cells.iter().filter(|other| other.row == cell.row && other.server != cell.server);
        let ahead = others.filter_map(|other| ranked(results, other, metric)).filter(|other| match metric {
            Metric::Goodput => other.low > own.high,
            _ => other.high < own.low,
        });
        Some(1 + ahead.count())
    };
    let of_cell = |cell: &Cell| Places {
        goodput: place(cell, Metric::Goodput),
        server_micros_per_answer: place(cell, Metric::ServerMicrosPerAnswer),
        p99: place(cell, Metric::P99),
        bytes_per_connection: place(cell, Metric::BytesPerConnection),
    };
    results.cells.iter().map(of_cell).collect()
}

/// The estimate of a cell in a metric.
pub fn estimate(cell: &Cell, metric: Metric) -> Option<&Estimate> {
    match metric {
        Metric::Goodput => cell.goodput_per_second.as_ref(),
        Metric::ServerMicrosPerAnswer => cell.server_micros_per_answer.as_ref(),
        Metric::P50 => cell.p50_micros.as_ref(),
        Metric::P99 => cell.p99_micros.as_ref(),
        Metric::BytesPerConnection => cell.bytes_per_connection.as_ref(),
    }
}

fn ranked<'a>(results: &LabResults, cell: &'a Cell, metric: Metric) -> Option<&'a Estimate> {
    let copy = results.servers.iter().any(|server| server.name == cell.server && server.twin_of.is_some());
    (!copy && cell.comparable_in.contains(&metric)).then(|| estimate(cell, metric)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::example_results::example;
    use super::*;

    #[test]
    fn overlapping_intervals_share_a_place() {
        let mut results = example();
        let row = results.rows[0].name.clone();
        results.cells.retain(|cell| cell.row == row && cell.server != "larder (again)");
        let wide = |median: f64| Estimate { median, low: median - 10.0, high: median + 10.0, ..Estimate::default() };
        for (cell, goodput) in results.cells.iter_mut().zip([100.0, 115.0, 200.0]) {
            cell.goodput_per_second = Some(wide(goodput));
            cell.server_micros_per_answer = Some(wide(goodput));
            cell.comparable_in = vec![Metric::Goodput, Metric::ServerMicrosPerAnswer];
        }
        results.cells.truncate(3);
        let got: Vec<_> = places(&results).iter().map(|p| (p.goodput, p.server_micros_per_answer, p.p99)).collect();
        assert_eq!(got, [(Some(2), Some(1), None), (Some(2), Some(1), None), (Some(1), Some(3), None)]);
    }

    #[test]
    fn what_the_client_bounded_ranks_no_throughput() {
        use crate::results::Colour;
        let results = example();
        for (cell, places) in results.cells.iter().zip(places(&results)) {
            assert!(cell.ranks_throughput || places.goodput.is_none());
            let failed = !matches!(cell.colour, Colour::Clean | Colour::LightYellow);
            assert!(!failed || places == Places::default());
        }
    }
}
