/* SPDX-License-Identifier: Apache-2.0
 *
 * The one list of metrics: name, kind, help. From it come the struct of atomics, `status` and the
 * table in the README. Counters count from the start of the process. */
#ifndef PW_METRICS_H
#define PW_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#define PW_METRICS(X)                                                                              \
    X(commits, counter, "commits of the store")                                                    \
    X(changes, counter, "changes committed")                                                       \
    X(transitions, counter, "visits begun")                                                        \
    X(runs, counter, "runs of a work function")                                                    \
    X(retries, counter, "attempts that ended in a retry")                                          \
    X(timeouts, counter, "timeouts that fired")                                                    \
    X(parked, counter, "entities parked")                                                          \
    X(deleted, counter, "entities deleted, by command or retention")                               \
    X(skipped_moved, counter, "tasks skipped: the entity had left the visit")                      \
    X(skipped_attempt, counter, "tasks skipped: another attempt had begun")                        \
    X(skipped_gone, counter, "tasks skipped: the entity was deleted")                              \
    X(skipped_held, counter, "tasks skipped: held")                                                \
    X(refused_stale, counter, "outcomes refused: the visit or attempt was over")                   \
    X(no_answer, counter, "attempts that gave no answer in attempt_ms")                            \
    X(repeated, counter, "commands answered again under their message id")                         \
    X(refused, counter, "commands refused")                                                        \
    X(emitted, counter, "messages emitted")                                                        \
    X(told, counter, "tells delivered")                                                            \
    X(tells_refused, counter, "tells refused for good")                                            \
    X(swept, counter,                                                                              \
      "ready entities that only the safety net found: 0 unless something is wrong")                \
    X(crash_starts, counter, "starts saved on probation after an unclean stop")                    \
    X(full, counter, "commits refused because the store was full")                                 \
    X(reopens, counter, "times the store was closed and opened anew after an error")               \
    X(appended, counter, "records acknowledged by the journal")                                    \
    X(resumed, counter, "times the relay began again from the lowest unacknowledged record")       \
    X(openings, counter, "times the journal was opened: at start, and after it was lost or cut")   \
    X(void_records, counter, "records in the journal that no owner wrote")                         \
    X(taken, counter, "records taken over from the journal")                                       \
    X(reseeded, counter, "records appended again because the journal lacked them")                 \
    X(set_aside, counter, "changes that the journal contradicts, written to a file")               \
    X(letters, counter, "dead letters sent")                                                       \
    X(ready, gauge, "tasks on the ready lists")                                                    \
    X(running, gauge, "tasks on a thread")                                                         \
    X(later, gauge, "tasks kept open by pawl_later")

struct pw_metrics {
#define PW_METRIC_FIELD(name, kind, help) _Atomic uint64_t name;
    PW_METRICS(PW_METRIC_FIELD)
#undef PW_METRIC_FIELD
};

#define pw_count(metrics, name, by)                                                                \
    ((void)atomic_fetch_add_explicit(&(metrics)->name, (by), memory_order_relaxed))
#define pw_uncount(metrics, name, by)                                                              \
    ((void)atomic_fetch_sub_explicit(&(metrics)->name, (by), memory_order_relaxed))

#endif
