/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine costs that has nothing to do: entities wait, pools have their threads, nobody
 * calls. In per cent of one core. */
#include "bench/support.h"

#define SETTLE_MS 1500 /* the sweep of the start, and what the creations left */

int main(int argc, char **argv)
{
    static const pawl_machine *const machines[] = { &bench_waiting_machine, &bench_working_machine,
                                                    NULL };
    const struct bench_args args = bench_begin(argc, argv);
    const struct bench_how how = { .journal = NULL };
    char dir[BENCH_PATH_MAX] = "";
    bench_path(dir, args.dir, "idle");
    struct pawl *engine = bench_engine(dir, machines, &how);
    bench_create(engine, &bench_waiting_machine, 0, 10000);
    bench_pause_ms(SETTLE_MS);
    double cpu_s = bench_cpu_seconds();
    double began = bench_seconds();
    bench_pause_ms(args.quick ? 1000 : 10000);
    double share = (bench_cpu_seconds() - cpu_s) / (bench_seconds() - began);
    bench_result("idle", 100 * share, "% of a core", 0);
    pawl_close(engine);
    bench_remove(dir);
    return 0;
}
