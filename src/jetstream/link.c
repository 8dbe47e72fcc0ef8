/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a connection. While the library has it, the library brings it back; when the library
 * gave it up, or it never was there, the user's thread makes a new one in pw_link_get. Callbacks
 * come one after the other from one thread of the library, the closing one last: only when it has
 * come is a new connection made, or the link freed. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/wake.h"
#include "jetstream/bus.h"
#include "jetstream/link.h"
#include "jetstream/login.h"

#define WAIT_MS_MIN 100
#define WAIT_MS_MAX 2000
/* For all servers of the list together. */
#define CONNECT_MS 2000
#define CONNECT_MS_MIN 250
/* A peer that is dead without a reset is noticed after so long, times two. */
#define PING_MS 5000
#define PINGS_OUT_MAX 2
/* A peer that takes nothing any more holds up nobody for longer. */
#define WRITE_MS 2000
/* The last callback comes when the library's reconnect thread has ended. */
#define CLOSING_MS_MAX 10000

struct pw_link {
    natsOptions *options;
    natsConnection *connection; /* this and the next six: the user's thread's */
    struct pw_clock clock;
    struct pw_rng rng;
    uint64_t next_ms; /* no try before it */
    uint64_t wait_ms;
    pawl_why last; /* why it is away */
    char bus[PW_BUS_MAX + 1];
    char seed[PW_NKEY_SEED_SIZE];
    uint64_t jitter_seed;
    void (*poke)(void *arg);
    void *arg;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    bool halted;
    uint64_t turn;
    unsigned opened; /* connections, ever */
    unsigned closed;
    unsigned lost; /* times, of the present one */
    unsigned back;
};

/* --- called by the library ---------------------------------------------------------------- */

static void poke(struct pw_link *link)
{
    if (link->poke != NULL)
        link->poke(link->arg);
}

static void on_lost(natsConnection *connection, void *arg)
{
    struct pw_link *link = arg;
    (void)connection;
    pthread_mutex_lock(&link->lock);
    link->lost++;
    pthread_mutex_unlock(&link->lock);
    poke(link);
}

static void on_back(natsConnection *connection, void *arg)
{
    struct pw_link *link = arg;
    (void)connection;
    pthread_mutex_lock(&link->lock);
    link->back++;
    link->turn++;
    pthread_mutex_unlock(&link->lock);
    poke(link);
}

static void on_closed(natsConnection *connection, void *arg)
{
    struct pw_link *link = arg;
    (void)connection;
    poke(link);
    pthread_mutex_lock(&link->lock);
    link->closed++; /* from here on the link may be freed, once the lock is */
    pthread_cond_signal(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

/* Without one the library would print. What it says is seen where it counts: a request that is not
 * answered, a subscription that brings nothing. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *arg)
{
    (void)connection;
    (void)subscription;
    (void)status;
    (void)arg;
}

/* A growing wait, 80 to 100 % of it, so that many clients do not come at once. */
static uint64_t vary(uint64_t wait_ms, struct pw_rng *rng)
{
    return wait_ms - pw_rng_below(rng, wait_ms / 5 + 1);
}

static int64_t reconnect_wait_ms(natsConnection *connection, int attempts, void *arg)
{
    const struct pw_link *link = arg;
    struct pw_rng rng = { link->jitter_seed + (uint64_t)attempts };
    uint64_t wait_ms = WAIT_MS_MIN;
    (void)connection;
    for (int i = 1; i < attempts && wait_ms < WAIT_MS_MAX; i++)
        wait_ms *= 2;
    return (int64_t)vary(wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX, &rng);
}

/* --- options ------------------------------------------------------------------------------ */

static natsStatus set_reconnect(natsOptions *options, struct pw_link *link)
{
    natsStatus status = natsOptions_SetAllowReconnect(options, true);
    if (status == NATS_OK)
        status = natsOptions_SetMaxReconnect(options, -1);
    if (status == NATS_OK)
        status = natsOptions_SetCustomReconnectDelay(options, reconnect_wait_ms, link);
    /* What is published while it is away fails (0 would be the default's 8 MiB): a record that
     * comes after the others have given up on it is worth nothing. */
    if (status == NATS_OK)
        status = natsOptions_SetReconnectBufSize(options, 1);
    if (status == NATS_OK)
        status = natsOptions_SetFailRequestsOnDisconnect(options, true);
    if (status == NATS_OK)
        status = natsOptions_SetPingInterval(options, PING_MS);
    if (status == NATS_OK)
        status = natsOptions_SetMaxPingsOut(options, PINGS_OUT_MAX);
    return status;
}

static natsStatus set_callbacks(natsOptions *options, struct pw_link *link)
{
    natsStatus status = natsOptions_SetDisconnectedCB(options, on_lost, link);
    if (status == NATS_OK)
        status = natsOptions_SetReconnectedCB(options, on_back, link);
    if (status == NATS_OK)
        status = natsOptions_SetClosedCB(options, on_closed, link);
    if (status == NATS_OK)
        status = natsOptions_SetErrorHandler(options, on_error, link);
    return status;
}

static natsStatus set_rest(natsOptions *options, const struct pw_link_options *wanted, int servers)
{
    int64_t each_ms = CONNECT_MS / servers > CONNECT_MS_MIN ? CONNECT_MS / servers : CONNECT_MS_MIN;
    natsStatus status = natsOptions_SetTimeout(options, each_ms);
    if (status == NATS_OK)
        status = natsOptions_SetWriteDeadline(options, WRITE_MS);
    if (status == NATS_OK)
        status = natsOptions_SetCustomInboxPrefix(options, PW_INBOX_PREFIX);
    if (status == NATS_OK)
        status = natsOptions_SetSendAsap(options, wanted->quick);
    if (status == NATS_OK && wanted->name != NULL)
        status = natsOptions_SetName(options, wanted->name);
    return status;
}

static pawl_err fill(struct pw_link *link, const struct pw_link_options *wanted, pawl_why *why)
{
    int servers = 1;
    pawl_err err = pw_bus_check(wanted->bus, &servers, NULL, why);
    if (err != PAWL_OK)
        return pw_fail_in(why, err, "bus");
    pw_bus_print(wanted->bus, link->bus, sizeof(link->bus));
    natsStatus status = natsOptions_Create(&link->options);
    if (status == NATS_OK)
        status = set_reconnect(link->options, link);
    if (status == NATS_OK)
        status = set_callbacks(link->options, link);
    if (status == NATS_OK)
        status = set_rest(link->options, wanted, servers);
    if (status != NATS_OK)
        return pw_fail(why, pw_nats_err(status), "NATS: %s", natsStatus_GetText(status));
    return pw_login_apply(link->options, wanted->bus, wanted->nats, link->seed, why);
}

/* --- connecting --------------------------------------------------------------------------- */

/* The library's text says more about TLS; one that may quote a URL is left out. */
static void describe(natsStatus status, char *to, size_t size)
{
    natsStatus of = NATS_OK;
    const char *detail = status == NATS_SSL_ERROR ? nats_GetLastError(&of) : NULL;
    if (status == NATS_CONNECTION_AUTH_FAILED)
        pw_print(to, size, "the server refuses these credentials");
    else if (detail != NULL && detail[0] != '\0' && strchr(detail, '@') == NULL)
        pw_print(to, size, "TLS: %.160s", detail);
    else
        pw_print(to, size, "%s", natsStatus_GetText(status));
}

static pawl_err try_later(struct pw_link *link, pawl_why *why)
{
    link->next_ms = link->clock.monotonic_ms(&link->clock) + vary(link->wait_ms, &link->rng);
    link->wait_ms = link->wait_ms * 2 < WAIT_MS_MAX ? link->wait_ms * 2 : WAIT_MS_MAX;
    return pw_fail(why, PAWL_E_IO, "%s", link->last.text);
}

/* False: the one before is not through yet. */
static bool begin_connection(struct pw_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool through = link->opened == link->closed;
    if (through) {
        link->lost = 0;
        link->back = 0;
    }
    pthread_mutex_unlock(&link->lock);
    return through;
}

static pawl_err connect_now(struct pw_link *link, pawl_why *why)
{
    char text[200] = "";
    natsConnection *made = NULL;
    if (link->clock.monotonic_ms(&link->clock) < link->next_ms || !begin_connection(link))
        return pw_fail(why, PAWL_E_IO, "%s", link->last.text);
    natsStatus status = natsConnection_Connect(&made, link->options);
    if (status != NATS_OK) {
        describe(status, text, sizeof(text));
        pw_say(&link->last, "connect to %.128s: %s", link->bus, text);
        return try_later(link, why);
    }
    link->connection = made;
    link->wait_ms = WAIT_MS_MIN;
    link->next_ms = link->clock.monotonic_ms(&link->clock) + WAIT_MS_MIN;
    pthread_mutex_lock(&link->lock);
    link->opened++;
    link->turn++;
    pthread_mutex_unlock(&link->lock);
    return PAWL_OK;
}

/* The library gives up after two refusals of the credentials in a row, and when its reconnecting
 * fails inside. */
static void drop_closed(struct pw_link *link)
{
    if (link->connection == NULL || !natsConnection_IsClosed(link->connection))
        return;
    natsConnection_Destroy(link->connection);
    link->connection = NULL;
    pw_say(&link->last, "%.128s: the connection was given up", link->bus);
}

static bool is_up(const struct pw_link *link)
{
    return !link->halted && link->opened == link->closed + 1 && link->lost == link->back;
}

static bool is_halted(struct pw_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool halted = link->halted;
    pthread_mutex_unlock(&link->lock);
    return halted;
}

pawl_err pw_link_open(struct pw_link **link, const struct pw_link_options *options, pawl_why *why)
{
    struct pw_link *made = pw_alloc(sizeof(*made));
    if (made == NULL)
        return pw_fail(why, PAWL_E_NOMEM, "out of memory");
    pw_clock_init(&made->clock);
    made->jitter_seed = made->clock.wall_ms(&made->clock) ^ (uint64_t)(uintptr_t)made;
    made->rng = (struct pw_rng){ made->jitter_seed };
    made->wait_ms = WAIT_MS_MIN;
    made->poke = options->poke;
    made->arg = options->arg;
    int failed = pthread_mutex_init(&made->lock, NULL);
    assert(failed == 0);
    (void)failed;
    pw_cond_init(&made->changed);
    pawl_err err = fill(made, options, why);
    if (err != PAWL_OK) {
        pw_link_close(made);
        return err;
    }
    pw_say(&made->last, "%.128s: not connected yet", made->bus);
    *link = made;
    return PAWL_OK;
}

pawl_err pw_link_get(struct pw_link *link, natsConnection **connection, uint64_t *turn,
                     pawl_why *why)
{
    if (is_halted(link))
        return pw_fail(why, PAWL_E_IO, "%.128s: halted", link->bus);
    drop_closed(link);
    pawl_err err = link->connection == NULL ? connect_now(link, why) : PAWL_OK;
    if (err != PAWL_OK)
        return err;
    pthread_mutex_lock(&link->lock);
    bool up = is_up(link);
    uint64_t now = link->turn;
    pthread_mutex_unlock(&link->lock);
    if (!up || natsConnection_Status(link->connection) != NATS_CONN_STATUS_CONNECTED)
        return pw_fail(why, PAWL_E_IO, "%.128s: the connection is lost", link->bus);
    *connection = link->connection;
    if (turn != NULL)
        *turn = now;
    return PAWL_OK;
}

bool pw_link_is_up(struct pw_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool up = is_up(link);
    pthread_mutex_unlock(&link->lock);
    return up;
}

uint64_t pw_link_turn(struct pw_link *link)
{
    pthread_mutex_lock(&link->lock);
    uint64_t turn = link->turn;
    pthread_mutex_unlock(&link->lock);
    return turn;
}

void pw_link_halt(struct pw_link *link)
{
    pthread_mutex_lock(&link->lock);
    link->halted = true;
    pthread_mutex_unlock(&link->lock);
}

/* False: the last callback did not come. */
static bool wait_for_callbacks(struct pw_link *link)
{
    uint64_t until_ms = link->clock.monotonic_ms(&link->clock) + CLOSING_MS_MAX;
    pthread_mutex_lock(&link->lock);
    while (link->opened != link->closed && link->clock.monotonic_ms(&link->clock) < until_ms)
        (void)pw_cond_wait_ms(&link->changed, &link->lock, CLOSING_MS_MAX); /* looks again */
    bool through = link->opened == link->closed;
    pthread_mutex_unlock(&link->lock);
    return through;
}

void pw_link_close(struct pw_link *link)
{
    if (link == NULL)
        return;
    pw_link_halt(link);
    natsConnection_Destroy(link->connection);
    natsOptions_Destroy(link->options);
    if (!wait_for_callbacks(link))
        return; /* lost memory is better than a callback into freed memory */
    (void)pthread_cond_destroy(&link->changed); /* nobody waits any more */
    (void)pthread_mutex_destroy(&link->lock);
    pw_free(link);
}

pawl_err pw_nats_err(natsStatus status)
{
    switch (status) {
    case NATS_OK:
        return PAWL_OK;
    case NATS_NO_MEMORY:
        return PAWL_E_NOMEM;
    case NATS_NOT_PERMITTED:
    case NATS_MAX_PAYLOAD:
        return PAWL_E_CONFIG;
    default:
        return PAWL_E_IO;
    }
}
