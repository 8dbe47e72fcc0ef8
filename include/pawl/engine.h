/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's life: open, add machines, start, stop, close; or pawl_main(), which makes the user's
 * binary a daemon and a tool with these same calls. */
#ifndef PAWL_ENGINE_H
#define PAWL_ENGINE_H

#include "pawl/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pawl pawl;

typedef enum pawl_level { PAWL_ERROR, PAWL_WARN, PAWL_INFO, PAWL_DEBUG } pawl_level;

/* How to be let in by a NATS server; NULL: not used. Names of files are read once, at open. */
typedef struct pawl_nats {
    const char *user; /* with password */
    const char *password;
    const char *token;
    const char *nkey_seed_file; /* an NKey's seed, "SU..." */
    const char *creds_file;     /* a JWT and its seed, as `nsc` writes them */
    const char *tls_ca_file;    /* PEM; any of the three turns TLS on, as "tls://" does */
    const char *tls_cert_file;  /* PEM, with tls_key_file: the client's own */
    const char *tls_key_file;
} pawl_nats;

/* Zeros and NULL are the defaults. Borrowed for the call. */
typedef struct pawl_options {
    const char *dir; /* data directory; made if it is missing. Required */
    const char *bus; /* "local:" (default), or "nats://host:port", several separated by commas */
    const pawl_nats *nats;
    uint64_t outbox_rows_max; /* with NATS: commands are refused (PAWL_E_BUSY) while so many records
                                 wait for it; default 100,000 */
    const char *ns;           /* namespace, 1 to 32 of A-Z a-z 0-9 _ -; default "main" */
    uint32_t shards;          /* fixed when the directory is created; default 1, at most 64 */
    const char
        *sync; /* "commit" (default): answered after an fsync. "interval:<ms>": fsync so often;
                  survives a killed process, but a power cut may lose or damage the store */
    uint64_t map_bytes;   /* LMDB's map; default 1 TiB on 64-bit machines (the file grows only as it
                             is used) */
    uint32_t readers_max; /* concurrent readers of a shard, all processes together; default 1024 */
    uint64_t stop_ms;     /* how long pawl_close() waits for running work; default 10 s */
    bool read_only;       /* look beside a running daemon: reads only; no machines, no start */
    /* Gets every line of the log. From any thread, several at once; must not call pawl. NULL:
     * silent. */
    void (*log)(void *arg, pawl_level level, const char *id, const char *text);
    void *log_arg;
} pawl_options;

/* Opens the store. The engine is the caller's, ended by pawl_close().
 * PAWL_E_LOCKED: another process (named with host) writes it. PAWL_E_SCHEMA: foreign, newer, or of
 * another shard count. PAWL_E_CORRUPT, PAWL_E_IO, PAWL_E_FULL, PAWL_E_CONFIG as they say. */
PAWL_API PAWL_MUST_USE pawl_err pawl_open(pawl **engine, const pawl_options *options,
                                          pawl_why *why);

/* Adds a machine, before pawl_start(). Unit's machine and env must outlive the engine; the unit
 * itself is copied. PAWL_E_MACHINE: refused, *why names the row. */
PAWL_API PAWL_MUST_USE pawl_err pawl_add(pawl *engine, const pawl_unit *unit, pawl_why *why);

/* Recovers from the store and starts the threads. Entities go on where they were. */
PAWL_API PAWL_MUST_USE pawl_err pawl_start(pawl *engine, pawl_why *why);

/* Asks the engine to stop: new commands are refused (PAWL_E_CLOSED), no new work begins.
 * Async-signal-safe; any thread; may be called twice. */
PAWL_API void pawl_stop(pawl *engine);

/* Stops, waits up to stop_ms for work that runs or is kept open, then joins all threads and frees
 * everything. A work function that does not return holds it up; a task kept by pawl_later() does
 * not, and is worked again at the next start. Other threads' calls that are under way come back
 * first; none may begin any more. Takes NULL. Not from a callback or a work function. */
PAWL_API void pawl_close(pawl *engine);

/* The daemon and the tool: `run`, `check`, `status`, `create`... as `--help` says. units ends with
 * a row of zeros. Returns the exit status. `run` waits for SIGTERM and SIGINT in this thread: a
 * program that made threads before must have blocked both in them, or the system may end the
 * process by one of those. */
PAWL_API int pawl_main(int argc, char **argv, const pawl_unit *units);

PAWL_API const char *pawl_version(void);

#ifdef __cplusplus
}
#endif
#endif
