//! As siege: twelve numbers, as JSON (siege 4.0.7 as it is installed) or as the table of before.
//!
//! siege's definitions: a transaction is an answer of any status; successful is one below 400; failed is what brought
//! no answer; concurrency is the time of all transactions over the time of the run. Times are seconds with two places.

use super::as_numbers::ratio;
use super::{Printed, ToolRun};
use crate::error_kind::ErrorKind;
use crate::workload::Workload;

struct Numbers {
    transactions: u64,
    availability: f64,
    elapsed: f64,
    megabytes: f64,
    response_time: f64,
    transaction_rate: f64,
    throughput: f64,
    concurrency: f64,
    successful: u64,
    failed: u64,
    longest: f64,
    shortest: f64,
}

impl Numbers {
    fn of(run: &ToolRun<'_>) -> Numbers {
        let (tally, elapsed) = (run.tally(), run.seconds());
        let transactions = tally.answers();
        // What is wrong with a whole answer is nothing to siege.
        let whole = [ErrorKind::BadStatus, ErrorKind::BadLength, ErrorKind::BadBytes, ErrorKind::Dropped];
        let failed = tally.failed() - super::sum(tally, &whole);
        let times = &tally.from_intended;
        let mean = if times.is_empty() { 0.0 } else { times.mean() / 1e6 };
        let megabytes = tally.answer_bytes as f64 / 1_048_576.0;
        Numbers {
            transactions,
            availability: 100.0 * ratio(transactions as f64, (transactions + failed) as f64),
            elapsed,
            megabytes,
            response_time: mean,
            transaction_rate: transactions as f64 / elapsed,
            throughput: megabytes / elapsed,
            concurrency: mean * transactions as f64 / elapsed,
            successful: (0..4).map(|digit| tally.status_class(digit)).sum(),
            failed,
            longest: times.max() as f64 / 1e6,
            shortest: if times.is_empty() { 0.0 } else { times.min() as f64 / 1e6 },
        }
    }
}

pub(super) fn json(run: &ToolRun<'_>) -> Printed {
    let n = Numbers::of(run);
    let out = format!(
        "{{\t\"transactions\":\t\t\t{:>12},\n\
         \t\"availability\":\t\t\t{:>12.2},\n\
         \t\"elapsed_time\":\t\t\t{:>12.2},\n\
         \t\"data_transferred\":\t\t{:>12.2},\n\
         \t\"response_time\":\t\t{:>12.2},\n\
         \t\"transaction_rate\":\t\t{:>12.2},\n\
         \t\"throughput\":\t\t\t{:>12.2},\n\
         \t\"concurrency\":\t\t\t{:>12.2},\n\
         \t\"successful_transactions\":\t{:>12},\n\
         \t\"failed_transactions\":\t\t{:>12},\n\
         \t\"longest_transaction\":\t\t{:>12.2},\n\
         \t\"shortest_transaction\":\t\t{:>12.2}\n}}\n",
        n.transactions,
        n.availability,
        n.elapsed,
        n.megabytes,
        n.response_time,
        n.transaction_rate,
        n.throughput,
        n.concurrency,
        n.successful,
        n.failed,
        n.longest,
        n.shortest,
    );
    Printed { out, err: String::new() }
}

pub(super) fn opening(workload: &Workload) -> Printed {
    let err = format!(
        "** larder bench, in the form of SIEGE\n** Preparing {} concurrent users for battle.\nThe server is now under siege...\n",
        workload.users
    );
    Printed { out: String::new(), err }
}

/// siege writes its table to standard error.
pub(super) fn text(run: &ToolRun<'_>) -> Printed {
    let n = Numbers::of(run);
    let err = format!(
        "Transactions:\t\t{:>12} hits\n\
         Availability:\t\t{:>12.2} %\n\
         Elapsed time:\t\t{:>12.2} secs\n\
         Data transferred:\t{:>12.2} MB\n\
         Response time:\t\t{:>12.2} secs\n\
         Transaction rate:\t{:>12.2} trans/sec\n\
         Throughput:\t\t{:>12.2} MB/sec\n\
         Concurrency:\t\t{:>12.2}\n\
         Successful transactions:{:>12}\n\
         Failed transactions:\t{:>12}\n\
         Longest transaction:\t{:>12.2}\n\
         Shortest transaction:\t{:>12.2}\n \n",
        n.transactions,
        n.availability,
        n.elapsed,
        n.megabytes,
        n.response_time,
        n.transaction_rate,
        n.throughput,
        n.concurrency,
        n.successful,
        n.failed,
        n.longest,
        n.shortest,
    );
    Printed { out: String::new(), err }
}
