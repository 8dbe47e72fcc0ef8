/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the example `order` as daemon and tool, in a place of its own. */
#ifndef TESTS_TOOL_H
#define TESTS_TOOL_H

#include <stddef.h>
#include <sys/types.h>

/* A scratch directory: d (data), log (the daemon's standard error). */
struct place {
    char root[64];
    char dir[80];
    char log[80];
    char sock[96];
    pid_t daemon; /* 0: none */
};

/* cmocka fixtures: *state is a place; what still runs in it is killed, and all of it removed. */
int place_make(void **state);
int place_remove(void **state);

struct result {
    int status;      /* 128 + the signal when it was killed */
    char out[65536]; /* cut; times as TIME, versions as V, sequences as S */
    char err[65536];
};

/* Runs `order --dir <d> ARGUMENT...` with this standard input (NULL: none). Ends with NULL. */
void tool(struct place *place, struct result *result, const char *input,
          const char *const *arguments);
#define TOOL(place, result, input, ...)                                                            \
    tool(place, result, input, (const char *const[]){ __VA_ARGS__, NULL })

/* Checks all three. */
#define EXPECT(result, status_, out_, err_)                                                        \
    do {                                                                                           \
        assert_string_equal((result)->err, err_);                                                  \
        assert_string_equal((result)->out, out_);                                                  \
        assert_int_equal((result)->status, status_);                                               \
    } while (0)

/* Starts the daemon, and waits until it answers. Ends with NULL. */
void daemon_start(struct place *place, const char *const *arguments);
#define DAEMON(place, ...) daemon_start(place, (const char *const[]){ __VA_ARGS__ })

/* Sends the signal and waits; the status as above. */
int daemon_end(struct place *place, int signal);

/* Waits for the daemon's end. */
int daemon_wait(struct place *place);

/* A connection to the daemon's socket. */
int daemon_connect(const struct place *place);

/* Waits until the condition holds; fails the test after half a minute. */
void wait_until(int (*holds)(void *arg), void *arg);

/* The daemon's log so far, cut; static. */
const char *daemon_log(const struct place *place);

#endif
