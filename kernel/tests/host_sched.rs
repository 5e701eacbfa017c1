//! The scheduler on std threads: the same code as on the machine, without preemption.
//!
//! One test function, for one scheduler exists in a program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use magpie::sched::{self, Priority, Spawn};

fn run<F>(cores: usize, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    sched::run_on_threads(cores, 1, main).expect("the main process ends")
}

#[test]
fn the_scheduler_keeps_its_promises_on_threads() {
    for cores in [1, 2, 4] {
        eprintln!("every_process_runs_once {cores}");
        every_process_runs_once(cores);
        eprintln!("yielding {cores}");
        yielding_processes_all_end(cores);
        eprintln!("pinned {cores}");
        pinned_processes_stay(cores);
        eprintln!("oow {cores}");
        running_out_of_work_is_noticed(cores);
    }
    high_goes_first();
}

fn every_process_runs_once(cores: usize) {
    let runs = Arc::new(AtomicU64::new(0));
    let counted = runs.clone();
    run(cores, async move {
        let handles: Vec<_> = (0..10_000)
            .map(|_| {
                let runs = runs.clone();
                sched::spawn(async move { runs.fetch_add(1, Ordering::Relaxed) }).expect("memory")
            })
            .collect();
        for handle in handles {
            handle.await.expect("no crash");
        }
    });
    assert_eq!(counted.load(Ordering::Relaxed), 10_000);
}

fn yielding_processes_all_end(cores: usize) {
    let total = run(cores, async {
        let handles: Vec<_> = (0..100)
            .map(|_| {
                sched::spawn(async {
                    for _ in 0..1000 {
                        sched::yield_now().await;
                    }
                    1
                })
                .expect("memory")
            })
            .collect();
        let mut total = 0;
        for handle in handles {
            total += handle.await.expect("no crash");
        }
        total
    });
    assert_eq!(total, 100);
}

fn pinned_processes_stay(cores: usize) {
    run(cores, async move {
        for index in 0..cores {
            let core = magpie::arch::CoreId::new(index).expect("a core");
            let seen = Spawn::new()
                .pinned(core)
                .start(async {
                    for _ in 0..50 {
                        sched::yield_now().await;
                    }
                    sched::current_core()
                })
                .expect("memory")
                .await
                .expect("no crash");
            assert_eq!(seen, Some(core));
        }
    });
}

fn running_out_of_work_is_noticed(cores: usize) {
    let left = run(cores, async {
        let left = Arc::new(AtomicU64::new(1000));
        for _ in 0..1000 {
            let left = left.clone();
            sched::spawn(async move {
                sched::yield_now().await;
                left.fetch_sub(1, Ordering::Relaxed);
            })
            .expect("memory");
        }
        sched::out_of_work().await;
        left.load(Ordering::Relaxed)
    });
    assert_eq!(left, 0, "out of work while processes were left");
}

fn high_goes_first() {
    let order = run(1, async {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut handles = Vec::new();
        for priority in [Priority::Low, Priority::Normal, Priority::High, Priority::Max] {
            let order = order.clone();
            let body = async move { order.lock().expect("no panic").push(priority) };
            handles.push(Spawn::new().priority(priority).start(body).expect("memory"));
        }
        for handle in handles {
            handle.await.expect("no crash");
        }
        order.lock().expect("no panic").clone()
    });
    assert_eq!(order, [Priority::Max, Priority::High, Priority::Normal, Priority::Low]);
}
