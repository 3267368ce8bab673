//! Bulk jobs: what is to be done to many executions, and the results.

use super::operating::{deletion, entry};
use super::{Case, Tried, more, record, start, start_as};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{
    Append, AuditEntry, AuditQuery, BulkItemId, BulkItems, BulkJob, BulkJobs, BulkResult, BulkState, ExecutionRecord,
    OpenJob, StoreError,
};

pub(super) const CASES: &[Case] = &[
    ("a bulk job is kept", a_bulk_job_is_kept),
    ("items of a bulk job are collected", items_are_collected),
    ("results of a bulk job are written once", results_are_written_once),
    ("an append carries out an item", an_append_carries_out_an_item),
    ("a bulk job changes its state", a_job_changes_its_state),
    ("bulk jobs are listed", jobs_are_listed),
    ("an unfinished bulk job begins again", an_unfinished_job_begins_again),
    ("old bulk jobs go", old_jobs_go),
];

/// The bulk jobs of the store, or `None` where it has none.
fn jobs<'a>(tried: &'a mut Tried<'_>) -> Option<&'a dyn BulkJobs> {
    tried.store().bulk_jobs()
}

fn job(id: &str) -> BulkJob {
    BulkJob {
        id: id.into(),
        action: "stop".into(),
        arguments: serde_json::from_str(r#"{"cause":"é"}"#).unwrap(),
        filter: serde_json::from_str(r#"{"flow":"f"}"#).unwrap(),
        by: "ann".into(),
        created: Timestamp(5),
        rate: Some(10),
        ..BulkJob::default()
    }
}

/// A job that runs, with an item for each of these executions.
fn running(id: &str) -> BulkJob {
    BulkJob {
        state: BulkState::Running,
        ..job(id)
    }
}

fn ids(ids: &[&str]) -> Vec<Text> {
    ids.iter().copied().map(Text::from).collect()
}

fn item(job: &str, number: u64) -> BulkItemId {
    BulkItemId {
        job: job.into(),
        number,
    }
}

fn to_run(jobs: &dyn BulkJobs) -> Vec<Text> {
    jobs.jobs_to_run().unwrap().into_iter().map(|job| job.id).collect()
}

fn numbers(jobs: &dyn BulkJobs, job: &str, which: BulkItems) -> Vec<u64> {
    let items = jobs.items(job, which, 0, 100).unwrap();
    items.iter().map(|item| item.number).collect()
}

fn a_bulk_job_is_kept(tried: &mut Tried<'_>) {
    let audit = entry("ann", "bulk", "j", 5);
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&job("j"), &[], Some(&audit)).unwrap();
    jobs.put_job(&running("k"), &ids(&["a", "b"]), None).unwrap();
    assert_eq!(jobs.job("j").unwrap(), Some(job("j")));
    assert_eq!(
        jobs.job("k").unwrap(),
        Some(BulkJob {
            items: 2,
            ..running("k")
        })
    );
    assert_eq!(jobs.job("l").unwrap(), None);
    let items = jobs.items("k", BulkItems::All, 0, 9).unwrap();
    let items: Vec<_> = items
        .iter()
        .map(|item| (item.number, item.execution.as_str(), &item.result))
        .collect();
    assert_eq!(items, [(1, "a", &None), (2, "b", &None)]);
    let query = AuditQuery {
        limit: 9,
        ..AuditQuery::default()
    };
    let entries = tried.store().audit(&query).unwrap().items;
    assert_eq!(entries.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(), [audit]);
}

fn items_are_collected(tried: &mut Tried<'_>) {
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&job("j"), &[], None).unwrap();
    let open = |state| OpenJob {
        id: "j".into(),
        state,
        rate: Some(10),
    };
    assert_eq!(jobs.jobs_to_run().unwrap(), [open(BulkState::Collecting)]);
    assert!(jobs.add_items("j", 1, &ids(&["a", "b"]), false).unwrap());
    // The process ended, and begins again.
    assert!(jobs.add_items("j", 1, &ids(&["c", "d"]), false).unwrap());
    assert!(jobs.add_items("j", 3, &ids(&["e"]), true).unwrap());
    assert!(!jobs.add_items("j", 1, &ids(&["f"]), true).unwrap());
    assert_eq!(jobs.jobs_to_run().unwrap(), [open(BulkState::Running)]);
    assert!(!jobs.add_items("gone", 1, &ids(&["f"]), true).unwrap());
    assert_eq!(
        jobs.job("j").unwrap(),
        Some(BulkJob {
            items: 3,
            ..running("j")
        })
    );
    let items = jobs.items("j", BulkItems::All, 1, 1).unwrap();
    assert_eq!((items.len(), items[0].number, items[0].execution.as_str()), (1, 2, "d"));
}

fn results_are_written_once(tried: &mut Tried<'_>) {
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&running("j"), &ids(&["a", "b", "c", "d"]), None).unwrap();
    let skipped = BulkResult::Skipped("NotRedrivable".into());
    let failed = BulkResult::Failed("Panicked".into());
    let all = [
        (item("j", 1), BulkResult::Done),
        (item("j", 1), skipped.clone()),
        (item("j", 2), skipped.clone()),
        (item("j", 3), failed.clone()),
        (item("j", 9), failed.clone()),
        (item("gone", 1), failed.clone()),
    ];
    jobs.set_results(&all).unwrap();
    jobs.set_results(&all).unwrap();
    let expected = BulkJob {
        items: 4,
        done: 1,
        skipped: 1,
        failed: 1,
        ..running("j")
    };
    assert_eq!(jobs.job("j").unwrap(), Some(expected));
    let items = jobs.items("j", BulkItems::All, 0, 9).unwrap();
    let results: Vec<_> = items.into_iter().map(|item| item.result).collect();
    assert_eq!(results, [Some(BulkResult::Done), Some(skipped), Some(failed), None]);
    for (which, expected) in [
        (BulkItems::Open, 4),
        (BulkItems::With("done"), 1),
        (BulkItems::With("skipped"), 2),
        (BulkItems::With("failed"), 3),
    ] {
        assert_eq!(numbers(jobs, "j", which), [expected], "{which:?}");
    }
}

fn an_append_carries_out_an_item(tried: &mut Tried<'_>) {
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&running("j"), &ids(&["a", "b", "c"]), None).unwrap();
    let of = |number| AuditEntry {
        bulk: Some(item("j", number)),
        ..entry("ann", "stop", "a", 6)
    };
    let ended = ExecutionRecord {
        status: Status::Failed,
        awake: false,
        ended: Some(Timestamp(10)),
        ..record("b")
    };
    tried.append(&[start("a"), start_as("b", ended)]);
    let stop = Append {
        audit: vec![of(1)],
        ..more("a", 2, 1)
    };
    let refused = Append {
        audit: vec![of(3)],
        ..more("a", 1, 1)
    };
    let delete = Append {
        audit: vec![of(2)],
        ..deletion("b", 2)
    };
    tried.append(&[stop, delete]);
    assert_eq!(tried.refused(&[refused]).len(), 1);
    let Some(jobs) = self::jobs(tried) else { return };
    assert_eq!(numbers(jobs, "j", BulkItems::Open), [3]);
    assert_eq!(numbers(jobs, "j", BulkItems::With("done")), [1, 2]);
    assert_eq!(jobs.job("j").unwrap().unwrap().done, 2);
}

fn a_job_changes_its_state(tried: &mut Tried<'_>) {
    use BulkState::{Cancelled, Collecting, Done, Running, Suspended};
    let audit = entry("ann", "suspend", "j", 6);
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&running("j"), &ids(&["a"]), None).unwrap();
    let change = |from: &[BulkState], to, audit| jobs.change_job("j", from, to, Timestamp(7), audit).unwrap();
    assert!(!change(&[Suspended, Collecting], Running, Some(&audit)));
    assert!(change(&[Running], Suspended, Some(&audit)));
    assert_eq!(to_run(jobs), ids(&[]));
    assert!(change(&[Suspended], Running, None));
    assert_eq!(jobs.job("j").unwrap().unwrap().ended, None);
    assert_eq!(to_run(jobs), ["j"]);
    assert!(change(&[Collecting, Running, Suspended], Cancelled, None));
    assert!(!change(&[Running], Done, None));
    let kept = jobs.job("j").unwrap().unwrap();
    assert_eq!((kept.state, kept.ended), (Cancelled, Some(Timestamp(7))));
    assert_eq!(to_run(jobs), ids(&[]));
    assert!(!jobs.change_job("gone", &[Running], Done, Timestamp(7), None).unwrap());
    let query = AuditQuery {
        limit: 9,
        ..AuditQuery::default()
    };
    assert_eq!(tried.store().audit(&query).unwrap().items.len(), 1);
}

fn an_unfinished_job_begins_again(tried: &mut Tried<'_>) {
    use BulkState::{Collecting, Unfinished};
    let Some(jobs) = jobs(tried) else { return };
    jobs.put_job(&job("j"), &[], None).unwrap();
    let change = |from, to| jobs.change_job("j", &[from], to, Timestamp(7), None).unwrap();
    assert!(jobs.add_items("j", 1, &ids(&["a", "b"]), false).unwrap());
    assert!(change(Collecting, Unfinished));
    assert_eq!(to_run(jobs), ids(&[]));
    assert!(!jobs.add_items("j", 3, &ids(&["c"]), true).unwrap());
    assert_eq!(jobs.job("j").unwrap().unwrap().state, Unfinished);
    assert!(change(Unfinished, Collecting));
    assert!(jobs.add_items("j", 1, &ids(&["d"]), true).unwrap());
    assert_eq!(jobs.job("j").unwrap().unwrap().items, 1);
}

fn jobs_are_listed(tried: &mut Tried<'_>) {
    let Some(jobs) = jobs(tried) else { return };
    for id in ["j1", "j2", "j3"] {
        jobs.put_job(&job(id), &[], None).unwrap();
    }
    assert_eq!(to_run(jobs), ["j1", "j2", "j3"]);
    for limit in [1, 2, 3, 9] {
        let (mut found, mut cursor) = (Vec::new(), None::<Text>);
        loop {
            let page = jobs.jobs(cursor.as_deref(), limit).unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|job| job.id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, ["j3", "j2", "j1"]);
    }
    assert_eq!(jobs.jobs(Some("?"), 1), Err(StoreError::BadCursor));
}

fn old_jobs_go(tried: &mut Tried<'_>) {
    let Some(jobs) = jobs(tried) else { return };
    for id in ["old", "young", "runs"] {
        jobs.put_job(&running(id), &ids(&["a", "b", "c", "d", "e"]), None)
            .unwrap();
    }
    let end = |id, at| {
        let ended = jobs.change_job(id, &[BulkState::Running], BulkState::Done, Timestamp(at), None);
        assert!(ended.unwrap());
    };
    end("old", 10);
    end("young", 20);
    let mut rounds = 0;
    while jobs.clear_jobs(Timestamp(20), 2).unwrap() > 0 {
        rounds += 1;
    }
    assert_eq!(rounds, 3);
    assert_eq!(jobs.job("old").unwrap(), None);
    assert_eq!(numbers(jobs, "old", BulkItems::All), Vec::<u64>::new());
    for id in ["young", "runs"] {
        assert_eq!(numbers(jobs, id, BulkItems::All).len(), 5);
    }
}
