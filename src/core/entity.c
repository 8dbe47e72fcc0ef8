/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from an entity's fields. Pure. */
#include "base/base.h"
#include "core/entity.h"
#include "core/machine.h"

const pawl_state *pw_entity_state(const struct pw_entity *entity)
{
    if (entity->machine == NULL || entity->state == PW_STATE_UNKNOWN)
        return NULL;
    return &entity->machine->states[entity->state];
}

bool pw_entity_works(const struct pw_entity *entity)
{
    const pawl_state *state = pw_entity_state(entity);
    return state != NULL && state->work != NULL;
}

bool pw_entity_final(const struct pw_entity *entity)
{
    const pawl_state *state = pw_entity_state(entity);
    return state != NULL && (state->flags & PAWL_FINAL) != 0;
}

bool pw_entity_ready(const struct pw_entity *entity)
{
    return pw_entity_works(entity) && entity->not_before_ms == 0 && !entity->held &&
           !entity->parked;
}

uint64_t pw_entity_due(const struct pw_entity *entity)
{
    if (entity->held || entity->parked)
        return 0;
    if (entity->not_before_ms == 0 || entity->deadline_ms == 0)
        return entity->not_before_ms + entity->deadline_ms; /* one of them, or none */
    return entity->not_before_ms < entity->deadline_ms ? entity->not_before_ms
                                                       : entity->deadline_ms;
}

static void print_moved(const struct pw_happening *h, char *to, size_t size)
{
    char attempt[16] = "";
    if (h->attempt > 0)
        pw_print(attempt, sizeof(attempt), " #%u", h->attempt);
    const char *late = h->late ? " (late)" : "";
    const char *colon = h->why[0] != '\0' ? ": " : "";
    pw_print(to, size, "%s%s --%s%s--> %s%s%s", h->from, attempt, h->event, late, h->to, colon,
             h->why);
}

void pw_happening_print(const struct pw_happening *h, char *to, size_t size)
{
    switch (h->kind) {
    case PW_CREATED:
        pw_print(to, size, "created in %s", h->to);
        break;
    case PW_MOVED:
        print_moved(h, to, size);
        break;
    case PW_RETRY:
        pw_print(to, size, "%s #%u retry: %s", h->from, h->attempt, h->why);
        break;
    case PW_PARKED:
        if (h->attempt > 0)
            pw_print(to, size, "%s #%u parked: %s", h->from, h->attempt, h->why);
        else
            pw_print(to, size, "%s parked: %s", h->from, h->why);
        break;
    case PW_REDONE:
        pw_print(to, size, "%s redone", h->from);
        break;
    case PW_HELD:
        pw_print(to, size, "%s held", h->from);
        break;
    case PW_RELEASED:
        pw_print(to, size, "%s released", h->from);
        break;
    case PW_DELETED:
        pw_print(to, size, "%s deleted", h->from);
        break;
    case PW_NOTED:
        pw_print(to, size, "%s note: %s", h->from, h->why);
        break;
    case PW_MEMOED:
        pw_print(to, size, "%s memo %s", h->from, h->event);
        break;
    case PW_SILENT:
    default:
        pw_print(to, size, "saved");
        break;
    }
}
