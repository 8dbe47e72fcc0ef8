/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon: opens, works, and ends in order, or, when work does not end in time, as after a
 * crash. The main thread waits for signals; all others have them blocked. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "app/app.h"
#include "app/log.h"
#include "app/socket.h"
#include "base/log.h"
#include "engine/engine.h"

static const int stop_signals[] = { SIGTERM, SIGINT, SIGHUP };

struct daemon {
    const struct pw_app *app;
    struct pw_app_log sink;
    struct pw_log log;
    struct pw_server *server;
    pawl *engine;
};

/* --- signals ------------------------------------------------------------------------------ */

/* One that is ignored from the beginning (nohup, a job in the background) stays so: waiting would
 * take it. */
static bool is_ignored(int signal)
{
    struct sigaction before;
    return sigaction(signal, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

static void block_signals(sigset_t *set)
{
    (void)sigemptyset(set); /* cannot fail, with signals that exist */
    for (size_t i = 0; i < PW_COUNT(stop_signals); i++)
        if (!is_ignored(stop_signals[i]))
            (void)sigaddset(set, stop_signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* The second signal. */
static void end_at_once(int signal)
{
    (void)signal;
    _exit(PW_EXIT_FORCED);
}

/* From here a signal ends the process. */
static void arm_second_signal(const sigset_t *set)
{
    struct sigaction end = { .sa_handler = end_at_once };
    for (size_t i = 0; i < PW_COUNT(stop_signals); i++)
        if (sigismember(set, stop_signals[i]) == 1)
            (void)sigaction(stop_signals[i], &end, NULL); /* cannot fail for these */
    (void)pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

/* --- begin -------------------------------------------------------------------------------- */

static pawl_err add_units(struct daemon *daemon, pawl_why *why)
{
    pawl_err err = PAWL_OK;
    for (const pawl_unit *unit = daemon->app->units; unit->machine != NULL && err == PAWL_OK;
         unit++)
        err = pawl_add(daemon->engine, unit, why);
    return err;
}

static pawl_err begin(struct daemon *daemon, char path[PW_SOCKET_PATH_MAX + 1], pawl_why *why)
{
    pawl_options options = { .log = pw_app_log_line, .log_arg = &daemon->sink };
    pawl_err err = pw_config_socket(&daemon->app->config, path, PW_SOCKET_PATH_MAX + 1, why);
    if (err == PAWL_OK)
        err = pw_app_open(daemon->app, &options, &daemon->engine, why);
    if (err == PAWL_OK)
        err = add_units(daemon, why);
    if (err == PAWL_OK)
        err = pw_server_open(&daemon->server, path, why);
    if (err == PAWL_OK)
        err = pawl_start(daemon->engine, why);
    if (err == PAWL_OK)
        err = pw_server_start(daemon->server, daemon->engine, why);
    return err;
}

static void say_ready(const struct daemon *daemon, const char *path)
{
    char machines[512] = "";
    for (const pawl_unit *unit = daemon->app->units; unit->machine != NULL; unit++) {
        size_t used = strlen(machines);
        pw_print(machines + used, sizeof(machines) - used, "%s%s", used > 0 ? "," : "",
                 unit->machine->name);
    }
    pw_log(&daemon->log, PAWL_INFO, "run.ready", "pid=%ld dir=%s socket=%s shards=%u machines=%s",
           (long)getpid(), daemon->app->config.dir, path, daemon->engine->shards_count, machines);
}

/* --- end ---------------------------------------------------------------------------------- */

/* Work that does not end cannot be ended: the process goes, and its attempts will be made again. */
static void drain(struct daemon *daemon)
{
    uint64_t ms = daemon->app->config.stop_ms;
    if (pw_engine_drain(daemon->engine, ms))
        return;
    pw_log(&daemon->log, PAWL_WARN, "run.forced",
           "work still runs after stop-ms=%llu: ending as by a crash, it will be run again",
           (unsigned long long)ms);
    _exit(PW_EXIT_FORCED);
}

static void end(struct daemon *daemon)
{
    pw_server_stop(daemon->server);
    pawl_close(daemon->engine);
    pw_server_close(daemon->server);
}

static int work(struct daemon *daemon, const sigset_t *set)
{
    char path[PW_SOCKET_PATH_MAX + 1] = "";
    pawl_why why = { "" };
    int signal = 0;
    pawl_err err = begin(daemon, path, &why);
    if (err != PAWL_OK) {
        end(daemon);
        return pw_complain(daemon->app, err, &why, "run");
    }
    say_ready(daemon, path);
    while (sigwait(set, &signal) != 0)
        ; /* interrupted */
    arm_second_signal(set);
    pw_log(&daemon->log, PAWL_INFO, "run.stopping", "signal=%d", signal);
    drain(daemon);
    end(daemon);
    pw_log(&daemon->log, PAWL_INFO, "run.stopped", "pid=%ld", (long)getpid());
    return PW_EXIT_OK;
}

int pw_verb_run(struct pw_app *app)
{
    struct daemon daemon = { .app = app };
    struct pw_levels levels;
    sigset_t set;
    pawl_why why = { "" };
    if (app->units->machine == NULL)
        return pw_complain_usage(app, "this program has no machine to run");
    if (pw_parse_levels(app->config.log_level, &levels, &why) != PAWL_OK)
        return pw_complain_usage(app, "%s", why.text); /* was checked when it was read */
    block_signals(&set);
    pw_app_log_init(&daemon.sink, STDERR_FILENO, &levels);
    daemon.log = (struct pw_log){ .sink = pw_app_log_line, .arg = &daemon.sink };
    int status = work(&daemon, &set);
    pw_app_log_fini(&daemon.sink);
    return status;
}
