/* SPDX-License-Identifier: Apache-2.0
 *
 * A short list under a read-write lock. */
#include <assert.h>

#include "base/base.h"
#include "engine/holds.h"

void pw_holds_init(struct pw_holds *holds)
{
    int failed = pthread_rwlock_init(&holds->lock, NULL);
    assert(failed == 0);
    (void)failed;
    holds->list = NULL;
    holds->count = 0;
    holds->live = 0;
}

void pw_holds_fini(struct pw_holds *holds)
{
    (void)pthread_rwlock_destroy(&holds->lock); /* nobody uses it any more */
    pw_free(holds->list);
    holds->list = NULL;
}

static struct pw_hold *find(struct pw_holds *holds, enum pw_hold_kind kind, const char *machine,
                            const char *name)
{
    for (size_t i = 0; i < holds->count; i++) {
        struct pw_hold *hold = &holds->list[i];
        if (hold->kind == kind && strcmp(hold->machine, machine) == 0 &&
            strcmp(hold->name, name) == 0)
            return hold;
    }
    return NULL;
}

static struct pw_hold *append(struct pw_holds *holds, enum pw_hold_kind kind, const char *machine,
                              const char *name)
{
    struct pw_hold *list = pw_realloc(holds->list, (holds->count + 1) * sizeof(*list));
    if (list == NULL)
        return NULL;
    holds->list = list;
    struct pw_hold *hold = &list[holds->count++];
    *hold = (struct pw_hold){ .kind = kind };
    pw_print(hold->machine, sizeof(hold->machine), "%s", machine);
    pw_print(hold->name, sizeof(hold->name), "%s", name);
    return hold;
}

static pawl_err add(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind,
                    const char *machine, const char *name, bool *added)
{
    uint64_t bit = UINT64_C(1) << shard;
    struct pw_hold *hold = find(holds, kind, machine, name);
    if (hold == NULL && holds->count >= PW_HOLDS_MAX)
        return PAWL_E_LIMIT;
    if (hold == NULL)
        hold = append(holds, kind, machine, name);
    if (hold == NULL)
        return PAWL_E_NOMEM;
    *added = (hold->shards & bit) == 0;
    hold->shards |= bit;
    return PAWL_OK;
}

pawl_err pw_holds_add(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind,
                      const char *machine, const char *name, bool *added)
{
    pthread_rwlock_wrlock(&holds->lock);
    pawl_err err = add(holds, shard, kind, machine, name, added);
    holds->live = holds->count;
    pthread_rwlock_unlock(&holds->lock);
    return err;
}

static void remove_from(struct pw_holds *holds, uint32_t shard, struct pw_hold *hold)
{
    hold->shards &= ~(UINT64_C(1) << shard);
    if (hold->shards == 0)
        *hold = holds->list[--holds->count];
}

void pw_holds_remove(struct pw_holds *holds, uint32_t shard, enum pw_hold_kind kind,
                     const char *machine, const char *name)
{
    pthread_rwlock_wrlock(&holds->lock);
    struct pw_hold *hold = find(holds, kind, machine, name);
    if (hold != NULL)
        remove_from(holds, shard, hold);
    holds->live = holds->count;
    pthread_rwlock_unlock(&holds->lock);
}

static bool is_in(const struct pw_hold *hold, const struct pw_hold *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (hold->kind == list[i].kind && strcmp(hold->machine, list[i].machine) == 0 &&
            strcmp(hold->name, list[i].name) == 0)
            return true;
    return false;
}

pawl_err pw_holds_set(struct pw_holds *holds, uint32_t shard, const struct pw_hold *list,
                      size_t count)
{
    pawl_err err = PAWL_OK;
    bool added = false;
    pthread_rwlock_wrlock(&holds->lock);
    for (size_t i = 0; i < count && err == PAWL_OK; i++)
        err = add(holds, shard, list[i].kind, list[i].machine, list[i].name, &added);
    for (size_t i = holds->count;
         i-- > 0;) /* backwards: a removed one is replaced by the last, which was looked at */
        if (!is_in(&holds->list[i], list, count))
            remove_from(holds, shard, &holds->list[i]);
    holds->live = holds->count;
    pthread_rwlock_unlock(&holds->lock);
    return err;
}

static bool covers(const struct pw_hold *hold, uint32_t shard, const struct pw_entity *entity)
{
    if ((hold->shards >> shard & 1) == 0 || strcmp(hold->machine, entity->machine_name) != 0)
        return false;
    switch (hold->kind) {
    case PW_HOLD_STATE:
        return strcmp(hold->name, entity->state_name) == 0;
    case PW_HOLD_KEY:
        return strcmp(hold->name, entity->key) == 0;
    case PW_HOLD_MACHINE:
    default:
        return true;
    }
}

bool pw_holds_cover(struct pw_holds *holds, uint32_t shard, const struct pw_entity *entity)
{
    if (atomic_load_explicit(&holds->live, memory_order_acquire) == 0)
        return false;
    bool covered = false;
    pthread_rwlock_rdlock(&holds->lock);
    for (size_t i = 0; i < holds->count && !covered; i++)
        covered = covers(&holds->list[i], shard, entity);
    pthread_rwlock_unlock(&holds->lock);
    return covered;
}
