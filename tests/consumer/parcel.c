/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's program in C, built against an installed pawl: a parcel is packed and then gone. One
 * engine in the folder given as argument, one entity, led to its final state. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <pawl/pawl.h>

enum { PACKING, GONE };
enum { PACKED };

struct desk {
    pthread_mutex_t lock;
    pthread_cond_t rang;
    bool sent;
};

static pawl_outcome pack(pawl_task *task)
{
    pawl_task_emit(task, "sent", pawl_task_data(task));
    return pawl_raise(PACKED);
}

static void emitted(void *env, const pawl_message *message)
{
    struct desk *desk = env;
    if (strcmp(message->name, "sent") != 0)
        return;
    pthread_mutex_lock(&desk->lock);
    desk->sent = true;
    pthread_cond_signal(&desk->rang);
    pthread_mutex_unlock(&desk->lock);
}

static const pawl_state states[] = {
    [PACKING] = { .name = "packing", .flags = PAWL_START, .work = pack },
    [GONE] = { .name = "gone", .flags = PAWL_FINAL },
};
static const char *const events[] = { [PACKED] = "packed" };
static const pawl_edge edges[] = { { .from = PACKING, .event = PACKED, .to = GONE } };
static const pawl_machine parcel = {
    .name = "parcel",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
};

static void wait_for_bell(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    while (!desk->sent)
        pthread_cond_wait(&desk->rang, &desk->lock);
    pthread_mutex_unlock(&desk->lock);
}

/* The message is sent after the commit that left the state, so the entity is in its final state by
 * now. */
static pawl_err send_parcel(pawl *engine, struct desk *desk, pawl_why *why)
{
    pawl_answer answer = { 0 };
    pawl_new options = { .data = pawl_str("a book") };
    pawl_err err = pawl_create(engine, "parcel", "42", &options, &answer);
    if (err != PAWL_OK) {
        *why = answer.why;
        return err;
    }
    wait_for_bell(desk);

    pawl_entity *entity = NULL;
    err = pawl_read(engine, "parcel", "42", &entity);
    if (err != PAWL_OK)
        return err;
    if (strcmp(entity->state, "gone") != 0) {
        (void)snprintf(why->text, sizeof(why->text), "the parcel is in state %s", entity->state);
        err = PAWL_E_STALE;
    }
    pawl_entity_free(entity);
    return err;
}

static pawl_err run(const char *dir, pawl_why *why)
{
    struct desk desk = { .lock = PTHREAD_MUTEX_INITIALIZER, .rang = PTHREAD_COND_INITIALIZER };
    const pawl_unit unit = { .machine = &parcel, .env = &desk, .emitted = emitted };
    const pawl_options options = { .dir = dir };
    pawl *engine = NULL;

    pawl_err err = pawl_open(&engine, &options, why);
    if (err == PAWL_OK)
        err = pawl_add(engine, &unit, why);
    if (err == PAWL_OK)
        err = pawl_start(engine, why);
    if (err == PAWL_OK)
        err = send_parcel(engine, &desk, why);
    pawl_close(engine);
    return err;
}

int main(int argc, char **argv)
{
    pawl_why why = { "" };
    if (argc != 2) {
        (void)fprintf(stderr, "usage: parcel DIR\n");
        return 2;
    }
    pawl_err err = run(argv[1], &why);
    if (err != PAWL_OK) {
        (void)fprintf(stderr, "parcel: %s: %s\n", pawl_err_text(err), why.text);
        return 1;
    }
    (void)printf("pawl %s: the parcel is gone\n", pawl_version());
    return 0;
}
