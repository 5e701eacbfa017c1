/*
 * Processes: from the wake-up to the turn, with cores that search, sleep, watch, are called, and go out of service.
 *
 * Two cores, or three, and two processes: one is runnable, the other is woken by a turn or by an interrupt, or, with BOTH,
 * waits behind it. One turn may become endless, and may end after all; no stack is lent, so whatever waits behind it
 * must leave. With OFFLINE an operator takes core 1 out of service at some time; with PINNED somebody starts a process
 * there that can run nowhere else.
 *
 * Models: sched/core_loop.rs, sched/enqueue.rs (woken, place, deliver, requeue), sched/idle.rs, sched/steal.rs,
 * sched/sharing.rs, sched/preempt.rs (on_timer, look_for_waiting), sched/offline.rs, sched/spawn.rs (count_pinned),
 * sync/idle_flag.rs.
 *
 * A step is what lies between two accesses to what others write, so sequential consistency is assumed: that the barriers
 * make it so is shown by loom and herd7. The queues are exact; what is in them is loom's business.
 *
 * Time. Who looks at a crowded core notes it. A later look may find the note old, and must find it old when a timer has
 * fired that was armed after the note was made.
 *
 * Left out: priorities, the global queue, the balancer, lending stacks, backlogs (a thief is called at once; it only
 * comes earlier), steals of more than one process, affinity masks of more than one core and less than all, but for one (see AFFINITY),
 * mail (see mail.pml), a core that comes back.
 *
 * With AFFINITY the process 1 may run on the cores 0 and 2 alone. TRACK=n follows one process alone. COARSE makes fewer
 * steps of a core's announcement and of a steal, for three cores.
 */

#ifndef CORES
#define CORES 3
#endif
/* Processes; with PINNED one more, which is pinned to core 1. */
#ifndef PROCESSES
#define PROCESSES 2
#endif
/* Wake-ups: by turns, and by an interrupt. */
#ifndef WAKE_UPS
#define WAKE_UPS 1
#endif
#ifndef INTERRUPTS
#define INTERRUPTS 1
#endif
#ifndef OFFLINE
#define OFFLINE 0
#endif
#ifndef HOGS
#define HOGS 1
#endif
/* share.looks */
#ifndef LOOKS
#define LOOKS 1
#endif
/* idle.rs: FRUITLESS_SEARCHES. COARSE: fewer steps, for three cores. */
#ifdef COARSE
#define SEARCHES 1
#else
#define SEARCHES 2
#endif

#define NOBODY 255
#define THE_PINNED PROCESSES
#define BIT(n) (1 << (n))

#define AWAKE 0
#define DOZING 1
#define SLEEPING 2

/* Processes. */
bit runnable[PROCESSES + 1];
byte home[PROCESSES + 1];

/* Cores. */
chan own[CORES] = [PROCESSES + 1] of { byte };
chan inbox[CORES] = [PROCESSES + 1] of { byte };
byte bound[CORES];		/* how many pinned processes wait there */
byte fast[CORES] = NOBODY;
bit stale[CORES];		/* the turn has seen the end of a slice */
bit busy[CORES];
byte depth[CORES];
bit announced[CORES];
bit called[CORES];
byte looks[CORES];
bit watches[CORES];
bit watched;
byte searching;
byte crowd[CORES];		/* 0: not noted; 1: noted; 2: noted long ago */
byte marks[CORES];
byte online = BIT(CORES) - 1;
byte pinned;

/* The course of events. */
byte left_to_wake = WAKE_UPS;
byte left_to_interrupt = INTERRUPTS;
byte left_to_hog = HOGS;
bit hogs;
byte hog_core;

/* Seen by the properties only. */
bit asleep[CORES];
byte track;
byte running[PROCESSES + 1];

#if CORES > 2
#define some_idle (announced[0] || announced[1] || announced[2])
#define all_idle (announced[0] && announced[1] && announced[2])
#define mask_of_idle (announced[0] | announced[1] << 1 | announced[2] << 2)
#define no_watch (!watches[0] && !watches[1] && !watches[2])
#define at_rest(c) (asleep[c] && !watches[c])
#define quiet (at_rest(0) && at_rest(1) && at_rest(2))
#else
#define some_idle (announced[0] || announced[1])
#define all_idle (announced[0] && announced[1])
#define mask_of_idle (announced[0] | announced[1] << 1)
#define no_watch (!watches[0] && !watches[1])
#define at_rest(c) (asleep[c] && !watches[c])
#define quiet (at_rest(0) && at_rest(1))
#endif

#define stealable(x) (len(own[x]) + len(inbox[x]))
#define has_work(x) (stealable(x) > 0 || bound[x] > 0 || fast[x] != NOBODY)

#ifdef AFFINITY
#define affinity_of(q) ((q) == THE_PINNED -> BIT(1) : ((q) == 1 -> BIT(0) | BIT(2) : BIT(CORES) - 1))
#else
#define affinity_of(q) ((q) == THE_PINNED -> BIT(1) : BIT(CORES) - 1)
#endif
#define allowed(q) ((affinity_of(q) & online) != 0 -> affinity_of(q) & online : affinity_of(q))

/* ---- time ---- */

inline arm(c) {
	marks[c] = (crowd[0] != 0) | (crowd[1] != 0) << 1;
#if CORES > 2
	marks[c] = marks[c] | (crowd[2] != 0) << 2
#endif
}

inline fires(c) {
	if :: marks[c] & 1 -> crowd[0] = 2 :: else fi;
	if :: marks[c] & 2 -> crowd[1] = 2 :: else fi;
#if CORES > 2
	if :: marks[c] & 4 -> crowd[2] = 2 :: else fi;
#endif
	marks[c] = 0
}

inline unnote(x) {
	crowd[x] = 0;
	marks[0] = marks[0] & ~BIT(x);
	marks[1] = marks[1] & ~BIT(x);
#if CORES > 2
	marks[2] = marks[2] & ~BIT(x);
#endif
}

/* sharing::may_be_robbed, and the run-next slot. */
inline is_candidate(x, yes) {
	if
	:: stealable(x) > 0 && stealable(x) + busy[x] > 1 ->
		if
		:: crowd[x] == 0 -> crowd[x] = 1; yes = 0
		:: crowd[x] == 1 -> yes = 0
		:: crowd[x] != 0 -> crowd[x] = 2; yes = 1
		fi
	:: else -> unnote(x); yes = 0
	fi;
	yes = yes || (fast[x] != NOBODY && stale[x])
}

/* ---- waking ---- */

inline wake_core(t) {
	atomic {
		if
		:: depth[t] != AWAKE -> depth[t] = AWAKE; yes = 1
		:: else -> yes = 0
		fi
	}
}

inline wake_thief() {
	atomic {
		if
		:: searching -> mask = 0
		:: else -> mask = mask_of_idle & online
		fi;
		k = 0
	}
	do
	:: atomic { k < CORES && (mask & BIT(k)) -> called[k] = 1 }
		wake_core(k);
		atomic {
			if
			:: yes -> k = CORES; yes = 0
			:: else -> k++
			fi
		}
	:: atomic { k < CORES && !(mask & BIT(k)) -> k++ }
	:: k == CORES -> break
	od;
	atomic { k = 0; mask = 0; yes = 0 }
}

/* enqueue::deliver */
inline deliver(q, t) {
	atomic {
		if
		:: q == THE_PINNED -> bound[t]++
		:: else -> inbox[t] ! q
		fi
	}
#ifndef MUTANT_delivered_not_woken
	wake_core(t);
#endif
	atomic { yes = 0; q = NOBODY; t = 0 }
}

/* enqueue::place_from_outside; sets `t` */
inline place_from_outside(q) {
	atomic {
		if
		:: allowed(q) & BIT(home[q]) -> t = home[q]
		:: else ->
			t = 0;
			do
			:: !(allowed(q) & BIT(t)) -> t++
			:: else -> break
			od;
			/* The shortest queue. */
			k = t;
			do
			:: k < CORES ->
				if
				:: (allowed(q) & BIT(k)) && stealable(k) < stealable(t) -> t = k
				:: else
				fi;
				k++
			:: else -> break
			od;
			k = 0
		fi
	}
}

/* enqueue::woken by a turn on this core */
inline woken(q) {
	atomic {
		if
		:: home[q] != c && (allowed(q) & BIT(home[q])) && (!(allowed(q) & BIT(c)) || !announced[home[q]]) -> t = home[q]
		:: else ->
			if
			:: allowed(q) & BIT(c) -> t = c
			:: else -> place_from_outside(q)
			fi
		fi
	}
	if
	:: t != c -> deliver(q, t)
	:: else ->
		atomic {
			if
			:: fast[c] != NOBODY -> own[c] ! fast[c]
			:: else
			fi;
			fast[c] = q;
			q = NOBODY;
			t = 0
		}
	fi
}

/* enqueue::requeue */
inline requeue(q) {
	if
#ifdef MUTANT_offline_keeps
	:: atomic { true ->
#else
	:: atomic { allowed(q) & BIT(c) ->
#endif
			/* A core out of service keeps what can run nowhere else, and nothing more. */
			assert((online & BIT(c)) || !(affinity_of(q) & online));
			if
			:: q == THE_PINNED -> bound[c]++
			:: else -> own[c] ! q
			fi;
			q = NOBODY
		}
#ifndef MUTANT_offline_keeps
	:: else ->
		place_from_outside(q);
		deliver(q, t)
#endif
	fi
}

/* ---- an endless turn: what its timer does ---- */

inline endless() {
	hog_core = c;
	do
	:: atomic {
			if
			:: again -> fires(c)
			:: else -> stale[c] = 1
			fi;
			yes = some_idle && has_work(c);
			any = yes && again;
			again = yes && !again;
			yes = 0;
			if
			:: again -> arm(c)
			:: else
			fi;
#ifdef MUTANT_slice_looks_once
			again = 0
#endif
		}
		if
		:: any -> any = 0;
#ifndef MUTANT_slice_calls_nobody
			wake_thief()
#endif
		:: else
		fi
	:: break
	od;
	atomic { hogs = 0; hog_core = 0; again = 0; marks[c] = 0; yes = 0; any = 0 }
}

/* ---- stealing ---- */

/* Sets `any` if some core is a candidate, as a mask in `mask`. */
inline look_for_candidates() {
	atomic {
		mask = 0;
		k = 0;
		do
		:: k < CORES && k != c ->
			is_candidate(k, yes);
			if
			:: yes -> mask = mask | BIT(k)
			:: else
			fi;
			k++
		:: k == c -> k++
		:: k == CORES -> break
		od;
		k = 0;
		yes = 0
	}
}

#define free(n) (!busy[n] && !has_work(n))

/* steal::give_on: what may not run here goes to a core where it may and that has nothing to do, or back to core t. */
inline give_on(q, t) {
#if defined(AFFINITY) && !defined(MUTANT_refused_goes_back)
	if
	:: atomic { free(2) && (online & affinity_of(q) & BIT(2)) -> home[q] = 2; t = 2 }
	:: atomic { !free(2) && free(0) && (online & affinity_of(q) & BIT(0)) -> home[q] = 0; t = 0 }
	:: else
	fi;
#endif
	deliver(q, t)
}

/* Sets `taken`. */
inline search() {
	atomic {
		taken = 0;
		if
		:: (online & BIT(c)) && !searching -> searching = 1; yes = 1
		:: else -> yes = 0
		fi
	}
	if
	:: yes ->
		look_for_candidates();
		do
		:: atomic { mask != 0 && !taken ->
				t = 0;
				do
				:: !(mask & BIT(t)) -> t++
				:: else -> break
				od;
				mask = mask & ~BIT(t);
				if
				:: len(own[t]) > 0 -> own[t] ? q
				:: len(own[t]) == 0 && len(inbox[t]) > 0 -> inbox[t] ? q
				:: stealable(t) == 0 && fast[t] != NOBODY && stale[t] -> q = fast[t]; fast[t] = NOBODY
				:: else -> q = NOBODY
				fi;
#ifdef COARSE
				if
				:: q != NOBODY && (affinity_of(q) & BIT(c)) ->
					home[q] = c; own[c] ! q; q = NOBODY; taken = 1
				:: else
				fi;
#endif
				if
				:: q == NOBODY -> t = 0
				:: else
				fi
			}
			if
			:: q == NOBODY
			:: q != NOBODY && (affinity_of(q) & BIT(c)) ->
				atomic { home[q] = c; own[c] ! q; q = NOBODY; t = 0; taken = 1 }
			:: q != NOBODY && !(affinity_of(q) & BIT(c)) ->
				give_on(q, t)
			fi
		:: else -> break
		od;
		atomic { searching = 0; mask = 0; yes = 0 }
		if
		:: taken ->
			look_for_candidates();
			if
			:: mask != 0 -> wake_thief()
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	yes = 0
}

/* ---- idle ---- */

#define finds_work (has_work(c) || called[c])

#ifdef COARSE
/* Flag and mask in one step. */
inline announce() {
	atomic { announced[c] = 1; depth[c] = DOZING }
}
inline retract() {
	atomic { depth[c] = AWAKE; announced[c] = 0 }
}
#else
inline announce() {
	announced[c] = 1;
	depth[c] = DOZING
}
inline retract() {
	depth[c] = AWAKE;
	announced[c] = 0
}
#endif

inline next_look() {
	atomic {
		if
#ifdef MUTANT_watch_without_end
		:: !watched ->
#else
		:: !all_idle && looks[c] < LOOKS && !watched ->
			looks[c]++;
#endif
			watched = 1;
			watches[c] = 1;
			arm(c)
		:: else
		fi
	}
}

proctype Core(byte c) {
	byte p, q, t, k, n, mask;
	bit yes, any, again, taken;

	atomic { p = NOBODY; q = NOBODY }
loop:
#if OFFLINE
	/* offline::evacuate */
	if
	:: !(online & BIT(c)) ->
		n = stealable(c) + bound[c] + (fast[c] != NOBODY);
		do
		:: n > 0 ->
			atomic {
				n--;
				if
				:: len(inbox[c]) > 0 -> inbox[c] ? q
				:: len(own[c]) > 0 -> own[c] ? q
				:: fast[c] != NOBODY -> q = fast[c]; fast[c] = NOBODY
				:: bound[c] > 0 -> bound[c]--; q = THE_PINNED
				:: !has_work(c) -> q = NOBODY; n = 0
				fi
			}
			if
			:: q != NOBODY -> requeue(q)
			:: else
			fi
		:: else -> break
		od
	:: else
	fi;
#endif
	/* The next, if there is one: each in its turn. */
	atomic {
		if
		:: len(inbox[c]) > 0 -> inbox[c] ? p
		:: len(own[c]) > 0 -> own[c] ? p
		:: fast[c] != NOBODY -> p = fast[c]; fast[c] = NOBODY
		:: bound[c] > 0 -> bound[c]--; p = THE_PINNED
		:: else -> p = NOBODY
		fi;
		if
		:: p != NOBODY ->
			home[p] = c; stale[c] = 0; busy[c] = 1; looks[c] = 0;
			running[p]++;
			assert(running[p] == 1);
			/* It is woken by what comes from now on. */
			runnable[p] = 0
		:: else
		fi
	}
	if
	:: p == NOBODY -> goto idling
	:: else
	fi;

	do
	:: atomic {
			left_to_wake > 0 ->
			left_to_wake--;
			if
			:: !runnable[0] && !running[0] -> q = 0; runnable[0] = 1
			:: !runnable[1] && !running[1] -> q = 1; runnable[1] = 1
			:: else -> q = NOBODY
			fi
		}
		if
		:: q != NOBODY -> woken(q)
		:: else
		fi
	:: atomic { left_to_hog > 0 && !hogs -> left_to_hog--; hogs = 1 }
		endless()
	:: break
	od;
	atomic { running[p]--; busy[c] = 0; p = NOBODY }
	goto loop;

idling:
	atomic { watches[c] = 0; n = 0 }
	do
	:: n < SEARCHES ->
		atomic {
			n++;
			if
			:: called[c] -> called[c] = 0; looks[c] = 0
			:: else
			fi
		}
		search();
		if
		:: taken -> goto awake
		:: else
		fi;
		announce();
		if
		:: (online & BIT(c)) && !searching -> look_for_candidates()
		:: else
		fi;
		atomic {
			if
			:: !finds_work && mask == 0 -> break
			:: else -> mask = 0
			fi
		}
		retract();
		if
		:: has_work(c) -> goto awake
		:: else
		fi
	:: else -> break
	od;
	atomic { n = 0; mask = 0; yes = 0; t = 0 }
	announce();
#ifndef MUTANT_core_no_look
	if
	:: finds_work -> goto retracts
	:: else
	fi;
#endif
	if
	:: depth[c] == AWAKE -> goto retracts
	:: else
	fi;
	depth[c] = SLEEPING;
	next_look();
	do
	:: atomic { depth[c] == AWAKE -> break }
#ifndef MUTANT_core_no_look
	:: atomic { depth[c] != AWAKE && finds_work -> break }
	:: atomic { depth[c] != AWAKE && !finds_work -> asleep[c] = 1 }
#else
	:: atomic { depth[c] != AWAKE -> asleep[c] = 1 }
#endif
		if
		:: atomic { depth[c] == AWAKE -> asleep[c] = 0; break }
		:: atomic { watches[c] -> asleep[c] = 0; fires(c); break }
		fi
	od;
	atomic {
		marks[c] = 0;
		if
#ifndef MUTANT_watch_kept
		:: watches[c] -> watched = 0
#endif
		:: else
		fi
	}
retracts:
	retract();
awake:
	atomic { n = 0; mask = 0; yes = 0; taken = 0; t = 0; k = 0 }
	goto loop
}

/* An interrupt, or a timer, on some core: it wakes a process, and never uses the queues of the core that it came to. */
proctype Device() {
	byte q, t, k;
	bit yes;
	do
	:: atomic {
			left_to_interrupt > 0 ->
			left_to_interrupt--;
			if
			:: !runnable[0] && !running[0] -> q = 0; runnable[0] = 1
			:: !runnable[1] && !running[1] -> q = 1; runnable[1] = 1
			:: else -> q = NOBODY
			fi
		}
		if
		:: q != NOBODY -> place_from_outside(q); deliver(q, t)
		:: else
		fi
	:: left_to_interrupt == 0 -> break
	od
}

#if OFFLINE
/* offline::offline(core 1) */
proctype Operator() {
	bit yes;
	online = online & ~BIT(1);
#ifdef MUTANT_offline_unasked
	skip;
#else
	if
	:: pinned > 0 -> online = online | BIT(1)
	:: else
	fi;
#endif
	if
	:: !(online & BIT(1)) ->
		wake_core(1)
	:: else
	fi
}
#endif

#ifdef PINNED
/* Starts a process that is pinned to core 1; refused if that is out of service. */
proctype Starter() {
	byte q, t;
	bit yes;
#ifdef MUTANT_pinned_counted_late
	if
	:: online & BIT(1) -> pinned++; runnable[THE_PINNED] = 1; atomic { q = THE_PINNED; t = 1 } deliver(q, t)
	:: else
	fi
#else
	pinned++;
	if
	:: online & BIT(1) -> runnable[THE_PINNED] = 1; atomic { q = THE_PINNED; t = 1 } deliver(q, t)
	:: else -> pinned--
	fi
#endif
}
#endif

init {
	atomic {
		byte i;
		/* The first is runnable on some core, the others wait to be woken. */
		if
		:: i = 0
		:: i = 1
		fi;
		runnable[0] = 1;
		home[0] = i;
		own[i] ! 0;
		home[1] = 0;
		if
		:: home[1] = 1
		:: true
		fi;
#ifdef BOTH
		/* Both are, on one core. */
		runnable[1] = 1;
		home[1] = i;
		own[i] ! 1;
#endif
		home[THE_PINNED] = 1;
#ifdef TRACK
		track = TRACK;
#else
		if
		:: track = 0
		:: track = 1
#ifdef PINNED
		:: track = THE_PINNED
#endif
		fi;
#endif
		for (i : 0 .. CORES - 1) { run Core(i) };
		i = 0;
		run Device();
#if OFFLINE
		run Operator();
#endif
#ifdef PINNED
		run Starter()
#endif
	}
}

/* ---- properties ---- */

/* What was made runnable gets its turn, whatever else goes on for ever. */
#define nobody_is_left (CORES == 2 && hogs && hog_core == 0 && !(online & BIT(1)))
/* (With one core out of service and the other in an endless turn nobody is left to run it.) */
ltl gets_its_turn { [] (runnable[track] -> <> (!runnable[track] || nobody_is_left)) }
/* The watch is somebody's. */
ltl watch_is_held { [] (watched -> !no_watch) }
/* In the end nobody executes anything. */
ltl rest { []<> hogs || <>[] quiet }
#ifdef PINNED
/* A core is not out of service for good while a process lives that can run nowhere else. */
ltl none_is_stranded { []<> ((online & BIT(1)) || pinned == 0) }
#endif
