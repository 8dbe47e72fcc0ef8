/* SPDX-License-Identifier: Apache-2.0
 *
 * A program whose tasks tell others, and fail, by their data: "fail", "go ID" or "new ID". */
#include <stdio.h>
#include <string.h>

#include "pawl/pawl.h"

enum { TRYING, DONE };
enum { TRIED };

static pawl_outcome try_it(pawl_task *task)
{
    char data[64] = "";
    pawl_bytes bytes = pawl_task_data(task);
    (void)snprintf(data, sizeof(data), "%.*s", (int)bytes.size, (const char *)bytes.data);
    if (strcmp(data, "fail") == 0)
        return pawl_fail("no way");
    if (strncmp(data, "go ", 3) == 0)
        pawl_task_tell(task, "task", data + 3, "tried", pawl_str("told so"));
    if (strncmp(data, "new ", 4) == 0)
        pawl_task_tell_new(task, "task", data + 4,
                           &(pawl_new){ .data = pawl_str("fail"), .key = "a key" });
    return pawl_raise(TRIED);
}

static const pawl_state states[] = {
    [TRYING] = { .name = "trying", .flags = PAWL_START, .work = try_it },
    [DONE] = { .name = "done", .flags = PAWL_FINAL },
};

static const char *const events[] = { [TRIED] = "tried" };

static const pawl_edge edges[] = { { .from = TRYING, .event = TRIED, .to = DONE } };

static const pawl_machine task = {
    .name = "task",
    PAWL_STATES(states),
    PAWL_EVENTS(events),
    PAWL_EDGES(edges),
};

int main(int argc, char **argv)
{
    const pawl_unit units[] = { { .machine = &task }, { 0 } };
    return pawl_main(argc, argv, units);
}
