/* SPDX-License-Identifier: Apache-2.0
 *
 * pawl_open: checks the options, takes the data directory's lock, opens a store and, with NATS, a
 * journal for each shard and hands all of it to the engine. The only place that knows which
 * adapters there are. */
#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#include "app/app.h"
#include "app/aside.h"
#include "core/names.h"
#include "core/tables.h"
#include "engine/engine.h"
#include "jetstream/bus.h"
#include "jetstream/journal.h"
#include "lmdb/store.h"

#define READERS_MAX_MAX 100000
#define OUTBOX_ROWS_MAX_MAX 1000000000

/* "<dir>/shard-<n>"; longer ones are refused by the store. */
#define SHARD_PATH_MAX 4096

/* The options with their defaults. */
struct plan {
    const char *dir;
    const char *ns;
    uint32_t shards;   /* 0: as the directory has */
    uint32_t existing; /* directories shard-0 to shard-<n - 1> */
    uint64_t interval_ms;
    const pawl_options *options;
};

static bool has_nats(const pawl_options *options)
{
    return options->bus != NULL && strcmp(options->bus, "local:") != 0;
}

static pawl_err check_options(const pawl_options *options, pawl_why *why)
{
    if (has_nats(options) && pw_bus_check(options->bus, NULL, NULL, why) != PAWL_OK)
        return pw_fail_in(why, PAWL_E_CONFIG, "bus: neither local: nor servers");
    if (options->outbox_rows_max > OUTBOX_ROWS_MAX_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "outbox_rows_max is above %d", OUTBOX_ROWS_MAX_MAX);
    if (options->shards > PW_SHARDS_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "%u shards; allowed are 1 to %d", options->shards,
                       PW_SHARDS_MAX);
    if (options->readers_max > READERS_MAX_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "readers_max %u; at most %d", options->readers_max,
                       READERS_MAX_MAX);
    if (options->stop_ms > PW_DURATION_MS_MAX)
        return pw_fail(why, PAWL_E_CONFIG, "stop_ms is above %llu",
                       (unsigned long long)PW_DURATION_MS_MAX);
    return PAWL_OK;
}

static pawl_err make_plan(struct plan *plan, pawl_why *why)
{
    const pawl_options *options = plan->options;
    pawl_err err = check_options(options, why);
    if (err == PAWL_OK)
        err = pw_check_namespace(plan->ns, why);
    if (err != PAWL_OK || options->sync == NULL)
        return err;
    err = pw_parse_sync(options->sync, &plan->interval_ms, why);
    return err == PAWL_OK ? err : pw_fail_in(why, err, "sync");
}

/* --- which shards there are --------------------------------------------------------------- */

/* "shard-<n>", as we write it; false for anything else. */
static bool parse_shard_name(const char *name, uint32_t *index)
{
    static const char prefix[] = "shard-";
    uint64_t value = 0;
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const char *digits = name + strlen(prefix);
    if (!pw_parse_number(digits, 0, PW_SHARDS_MAX - 1, &value))
        return false;
    if (digits[0] == '0' && digits[1] != '\0')
        return false;
    *index = (uint32_t)value;
    return true;
}

/* Counts them; a gap means that one was taken away. */
static pawl_err count_shards(const char *path, uint32_t *existing, pawl_why *why)
{
    uint64_t seen = 0;
    DIR *dir = opendir(path);
    if (dir == NULL)
        return pw_fail(why, PAWL_E_IO, "%.128s: %s", path, strerror(errno));
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        uint32_t index = 0;
        if (parse_shard_name(entry->d_name, &index))
            seen |= UINT64_C(1) << index;
    }
    (void)closedir(dir); /* was only read */
    uint32_t count = 0;
    while (count < PW_SHARDS_MAX && (seen >> count & 1) != 0)
        count++;
    if (count < PW_SHARDS_MAX && seen >> count != 0)
        return pw_fail(why, PAWL_E_SCHEMA, "%.128s/shard-%u is missing, and there are later ones",
                       path, count);
    *existing = count;
    return PAWL_OK;
}

pawl_err pw_app_count_shards(const char *dir, uint32_t *count, pawl_why *why)
{
    if (access(dir, F_OK) != 0 && errno == ENOENT) {
        *count = 0;
        return PAWL_OK;
    }
    return count_shards(dir, count, why);
}

static void shard_options(const struct plan *plan, uint32_t index, char path[SHARD_PATH_MAX],
                          struct pw_lmdb_options *options)
{
    pw_print(path, SHARD_PATH_MAX, "%s/shard-%u", plan->dir, index);
    *options = (struct pw_lmdb_options){
        .dir = path,
        .create = !plan->options->read_only,
        .read_only = plan->options->read_only,
        .map_bytes = plan->options->map_bytes,
        .readers_max = plan->options->readers_max,
        .sync_interval_ms = plan->interval_ms,
    };
}

/* How many shards the identity in shard 0 names; 0 when it has none yet. */
static pawl_err read_identity(struct pw_store *store, uint32_t *shards, pawl_why *why)
{
    struct pw_txn *txn = NULL;
    char text[128] = "";
    uint64_t of = 0;
    pawl_bytes value = { NULL, 0 };
    pawl_err err = store->ops->begin(store, false, &txn);
    if (err != PAWL_OK)
        return pw_fail(why, err, "read identity: %s", pawl_err_text(err));
    err = store->ops->get(txn, PW_META, (pawl_bytes){ "identity", sizeof("identity") }, &value);
    if (err == PAWL_OK)
        pw_print(text, sizeof(text), "%.*s", (int)(value.size < 127 ? value.size : 127),
                 (const char *)value.data);
    store->ops->abort(txn);
    *shards = 0;
    if (err == PAWL_E_NOT_FOUND)
        return PAWL_OK;
    if (err != PAWL_OK)
        return pw_fail(why, err, "read identity: %s", pawl_err_text(err));
    static const char first[] = ", shard 0 of ";
    const char *shard = strstr(text, first);
    if (shard == NULL || !pw_parse_number(shard + strlen(first), 1, PW_SHARDS_MAX, &of))
        return pw_fail(why, PAWL_E_SCHEMA, "the store is '%.100s'; that is no shard 0", text);
    *shards = (uint32_t)of;
    return PAWL_OK;
}

/* All directories are made before any identity is written: without one the creation was cut short,
 * nothing was ever stored, and it is completed. With one, a directory that is missing took its
 * entities along. */
static pawl_err settle_shards(struct plan *plan, struct pw_store *first, pawl_why *why)
{
    uint32_t recorded = 0;
    pawl_err err = read_identity(first, &recorded, why);
    if (err != PAWL_OK)
        return err;
    if (recorded == 0 && plan->options->read_only)
        return pw_fail(why, PAWL_E_IO, "%.128s: the store is being made", plan->dir);
    uint32_t have = recorded != 0 ? recorded : plan->existing;
    if (plan->shards == 0)
        plan->shards = have;
    if (recorded != 0 ? plan->shards != recorded : plan->shards < plan->existing)
        return pw_fail(why, PAWL_E_SCHEMA, "%.128s has %u shards; asked for are %u", plan->dir,
                       have, plan->shards);
    if (recorded != 0 && plan->existing != recorded)
        return pw_fail(why, PAWL_E_SCHEMA,
                       "%.128s has %u of its %u shard directories: put the others back, or delete "
                       "all",
                       plan->dir, plan->existing, recorded);
    return PAWL_OK;
}

/* --- open --------------------------------------------------------------------------------- */

static void close_stores(struct pw_store **stores, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        stores[i]->ops->close(stores[i]);
}

/* Opens all shards; shard 0 first, since it says how many there are. */
static pawl_err open_stores(struct plan *plan, struct pw_store *stores[PW_SHARDS_MAX],
                            pawl_why *why)
{
    char path[SHARD_PATH_MAX] = "";
    struct pw_lmdb_options options;
    uint32_t opened = 0;
    if (plan->existing == 0 && plan->options->read_only)
        return pw_fail(why, PAWL_E_IO, "%.128s: no store there", plan->dir);
    shard_options(plan, 0, path, &options);
    pawl_err err = pw_lmdb_open(&stores[0], &options, why);
    if (err != PAWL_OK)
        return err;
    opened++;
    if (plan->existing > 0)
        err = settle_shards(plan, stores[0], why);
    else if (plan->shards == 0)
        plan->shards = 1;
    for (; err == PAWL_OK && opened < plan->shards; opened++) {
        shard_options(plan, opened, path, &options);
        err = pw_lmdb_open(&stores[opened], &options, why);
        if (err != PAWL_OK)
            break;
    }
    if (err != PAWL_OK)
        close_stores(stores, opened);
    return err;
}

static void close_journals(struct pw_journal **journals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        journals[i]->ops->close(journals[i]);
}

/* None connects yet. */
static pawl_err open_journals(const struct plan *plan, struct pw_journal *journals[PW_SHARDS_MAX],
                              pawl_why *why)
{
    for (uint32_t shard = 0; shard < plan->shards; shard++) {
        const struct pw_jetstream_options options = {
            .bus = plan->options->bus, .nats = plan->options->nats, .ns = plan->ns, .shard = shard
        };
        pawl_err err = pw_jetstream_open(&journals[shard], &options, why);
        if (err != PAWL_OK) {
            close_journals(journals, shard);
            return err;
        }
    }
    return PAWL_OK;
}

static uint64_t make_seed(void)
{
    struct pw_clock clock;
    pw_clock_init(&clock);
    return clock.wall_ms(&clock) << 20 ^ clock.monotonic_ms(&clock); /* for jitter only */
}

static pawl_err open_engine(pawl **engine, struct plan *plan, int lock, pawl_why *why)
{
    struct pw_store *stores[PW_SHARDS_MAX] = { NULL };
    struct pw_journal *journals[PW_SHARDS_MAX] = { NULL };
    struct pw_set_aside aside = { .row = NULL };
    bool with_journals = has_nats(plan->options) && !plan->options->read_only;
    pawl_err err = count_shards(plan->dir, &plan->existing, why);
    if (err == PAWL_OK)
        err = open_stores(plan, stores, why);
    if (err == PAWL_OK && with_journals) {
        err = open_journals(plan, journals, why);
        if (err != PAWL_OK)
            close_stores(stores, plan->shards);
    }
    if (err != PAWL_OK) {
        pw_lmdb_unlock(lock);
        return err;
    }
    if (with_journals)
        pw_aside_open(&aside, plan->dir);
    const struct pw_parts parts = {
        .ns = plan->ns,
        .stores = stores,
        .journals = with_journals ? journals : NULL,
        .set_aside = aside,
        .shards = plan->shards,
        .log = { .sink = plan->options->log, .arg = plan->options->log_arg },
        .outbox_rows_max = plan->options->outbox_rows_max,
        .stop_ms = plan->options->stop_ms,
        .seed = make_seed(),
        .read_only = plan->options->read_only,
        .lock = lock,
        .unlock = pw_lmdb_unlock,
    };
    return pw_engine_open(engine, &parts, why);
}

pawl_err pawl_open(pawl **engine, const pawl_options *options, pawl_why *why)
{
    int lock = -1;
    if (engine == NULL || options == NULL || options->dir == NULL || options->dir[0] == '\0')
        return pw_fail(why, PAWL_E_USAGE, "no data directory is given");
    struct plan plan = { .dir = options->dir,
                         .ns = options->ns != NULL ? options->ns : "main",
                         .shards = options->shards,
                         .options = options };
    pawl_err err = make_plan(&plan, why);
    if (err != PAWL_OK)
        return err;
    if (!options->read_only)
        err = pw_lmdb_lock(plan.dir, &lock, why);
    if (err == PAWL_OK)
        err = open_engine(engine, &plan, lock, why);
    return err == PAWL_OK ? err : pw_fail_in(why, err, "open store");
}
