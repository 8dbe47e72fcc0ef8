// SPDX-License-Identifier: Apache-2.0
//
// A user's program in C++17: the test of a machine in the simulated world, with an installed
// pawl-test.
#include <cstdio>
#include <cstring>

#include <pawl/pawl.h>
#include <pawl/test.h>

namespace
{
enum state { PACKING, GONE };
enum event { PACKED };

pawl_outcome pack(pawl_task *task)
{
    if (pawl_task_attempt(task) == 1)
        return pawl_retry("no string");
    pawl_task_save(task, pawl_str("packed"));
    return pawl_raise(PACKED);
}

pawl_state working(const char *name, unsigned flags, pawl_work work)
{
    pawl_state state = {};
    state.name = name;
    state.flags = flags;
    state.work = work;
    return state;
}

const pawl_state states[] = { working("packing", PAWL_START, pack),
                              working("gone", PAWL_FINAL, nullptr) };
const char *const events[] = { "packed" };
const pawl_edge edges[] = { { PACKING, PACKED, GONE, false } };
const pawl_machine parcel = {
    "parcel", PAWL_STATES(states), PAWL_EVENTS(events), PAWL_EDGES(edges), 1, 0, 0, 0, 0, 0,
};
} // namespace

int main()
{
    pawl_why why = {};
    if (pawl_machine_check(&parcel, &why) != PAWL_OK) {
        std::fprintf(stderr, "parcel: %s\n", why.text);
        return 1;
    }
    pawl_world *world = pawl_world_open(&parcel, nullptr, 1);
    bool good = pawl_world_create(world, "42", pawl_str("a book")) == PAWL_OK;
    pawl_world_run_for(world, 2000);
    good = good && std::strstr(pawl_world_transcript(world), "parcel/42") != nullptr;
    good = good && std::strstr(pawl_world_transcript(world), "gone") != nullptr;
    good = good && pawl_world_verify(world, &why);
    if (!good)
        std::fprintf(stderr, "%s%s\n", pawl_world_transcript(world), why.text);
    pawl_world_close(world);
    return good ? 0 : 1;
}
