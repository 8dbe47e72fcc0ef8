/* SPDX-License-Identifier: Apache-2.0
 *
 * Subjects: as they are written, back and forth, and what is refused. */
#include <string.h>

#include "jetstream/subject.h"
#include "support/test.h"

static char subject[PW_SUBJECT_MAX];
static char machine[PW_NAME_MAX + 1];
static char id[PW_ID_MAX + 1];

static void journal(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        const char *subject;
    } cases[] = {
        { "42", "pawl.main.j.3.order.42" },
        { "a-b_c:d@e+f/G", "pawl.main.j.3.order.a-b_c:d@e+f/G" },
        { "a.b", "pawl.main.j.3.order.a=2Eb" },
        { "a b>*=%", "pawl.main.j.3.order.a=20b=3E=2A=3D=25" },
        { "\xc3\xa9", "pawl.main.j.3.order.=C3=A9" },
        { "_fence", "pawl.main.j.3.order._fence" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(pw_subject_journal(subject, "main", 3, "order", cases[i].id));
        assert_string_equal(subject, cases[i].subject);
        assert_true(pw_subject_parse(subject, "main", 3, machine, id));
        assert_string_equal(machine, "order");
        assert_string_equal(id, cases[i].id);
    }
}

static void others(void **state)
{
    (void)state;
    assert_true(pw_subject_fence(subject, "main", 0));
    assert_string_equal(subject, "pawl.main.j.0._fence");
    assert_true(pw_subject_mark(subject, "main", 63));
    assert_string_equal(subject, "pawl.main.j.63._mark");
    assert_true(pw_subject_event(subject, "main", "order", "paid"));
    assert_string_equal(subject, "pawl.main.event.order.paid");
    assert_true(pw_subject_letter(subject, "main", "order", "a.b", 7, 0, 0));
    assert_string_equal(subject, "pawl.main.dlq.order.a=2Eb.7");
    assert_true(pw_subject_letter(subject, "main", "order", "a.b", UINT64_MAX, 12, 2));
    assert_string_equal(subject, "pawl.main.dlq.order.a=2Eb.18446744073709551615.12.2");
}

static void letters(void **state)
{
    (void)state;
    struct pw_letter_place place;
    static const char *const wrong[] = {
        "pawl.main.dlq.order.a",
        "pawl.main.dlq.order.a.",
        "pawl.main.dlq.order.a.x",
        "pawl.main.dlq.order.a.7.",
        "pawl.main.dlq.order.a.7.12",
        "pawl.main.dlq.order.a.7.12.0",
        "pawl.main.dlq.order.a.7.12.2.",
        "pawl.main.dlq.order.a.7.12.4294967296",
        "pawl.main.dlq.order.a.18446744073709551616",
        "pawl.main.dlq.order..7",
        "pawl.main.dlq..a.7",
        "pawl.main.dlq.order.a b.7",
        "pawl.other.dlq.order.a.7",
        "pawl.main.j.order.a.7",
    };
    assert_true(
        pw_subject_parse_letter("pawl.main.dlq.order.a=2Eb.7", "main", machine, id, &place));
    assert_string_equal(machine, "order");
    assert_string_equal(id, "a.b");
    assert_int_equal(place.epoch, 7);
    assert_int_equal(place.lsn, 0);
    assert_int_equal(place.n, 0);
    assert_true(pw_subject_letter(subject, "main", "order", "a.b", UINT64_MAX, 12, UINT32_MAX));
    assert_true(pw_subject_parse_letter(subject, "main", machine, id, &place));
    assert_true(place.epoch == UINT64_MAX);
    assert_int_equal(place.lsn, 12);
    assert_true(place.n == UINT32_MAX);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (pw_subject_parse_letter(wrong[i], "main", machine, id, &place))
            fail_msg("%s is taken", wrong[i]);
}

static void all_letters(void **state)
{
    (void)state;
    assert_true(pw_subject_letters(subject, "main", NULL, NULL));
    assert_string_equal(subject, "pawl.main.dlq.>");
    assert_true(pw_subject_letters(subject, "main", "order", NULL));
    assert_string_equal(subject, "pawl.main.dlq.order.>");
    assert_true(pw_subject_letters(subject, "main", "order", "a.>"));
    assert_string_equal(subject, "pawl.main.dlq.order.a=2E=3E.>");
}

/* The longest of everything, every byte of the id an escape. */
static void longest(void **state)
{
    (void)state;
    char ns[PW_NAMESPACE_MAX + 1] = "";
    char name[PW_NAME_MAX + 1] = "";
    char longest_id[PW_ID_MAX + 2] = "";
    memset(ns, 'n', sizeof(ns) - 1);
    memset(name, 'm', sizeof(name) - 1);
    memset(longest_id, '.', PW_ID_MAX);
    assert_true(
        pw_subject_letter(subject, ns, name, longest_id, UINT64_MAX, UINT64_MAX, UINT32_MAX));
    assert_true(pw_subject_event(subject, ns, name, name));
    assert_true(pw_subject_journal(subject, ns, UINT32_MAX, name, longest_id));
    assert_true(pw_subject_parse(subject, ns, UINT32_MAX, machine, id));
    assert_string_equal(machine, name);
    assert_string_equal(id, longest_id);
    longest_id[PW_ID_MAX] = '.';
    assert_true(pw_subject_journal(subject, ns, 0, name, longest_id));
    assert_false(pw_subject_parse(subject, ns, 0, machine, id));
}

static void too_long(void **state)
{
    (void)state;
    char text[PW_SUBJECT_MAX + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(pw_subject_journal(subject, "main", 0, "order", text));
    assert_false(pw_subject_journal(subject, text, 0, "order", "42"));
    assert_false(pw_subject_letter(subject, "main", text, "42", 1, 0, 0));
    memset(text, '.', sizeof(text) - 1);
    assert_false(pw_subject_journal(subject, "main", 0, "order", text));
}

static void refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "pawl.main.j.3",
        "pawl.main.j.3.",
        "pawl.main.j.3._fence",
        "pawl.main.j.3._mark",
        "pawl.main.j.3.order",
        "pawl.main.j.3.order.",
        "pawl.main.j.3..42",
        "pawl.main.j.3._order.42",
        "pawl.main.j.3.or:der.42",
        "pawl.main.j.3.order.42.1",
        "pawl.main.j.30.order.42",
        "pawl.main.j.4.order.42",
        "pawl.mai.j.3.order.42",
        "pawl.main.event.order.42",
        "pawl.main.j.3.order.a=2eb", /* lower case */
        "pawl.main.j.3.order.=41",   /* of a byte that needs none */
        "pawl.main.j.3.order.=2",
        "pawl.main.j.3.order.=",
        "pawl.main.j.3.order.a=",
        "pawl.main.j.3.order.=00", /* no id has them */
        "pawl.main.j.3.order.=1F",
        "pawl.main.j.3.order.=7F",
        "pawl.main.j.3.order.a%b",
        "pawl.main.j.3.order.\xc3\xa9",
    };
    (void)pw_subject_journal(subject, "main", 3, "kept", "as-it-was");
    assert_true(pw_subject_parse(subject, "main", 3, machine, id));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (pw_subject_parse(cases[i], "main", 3, machine, id))
            fail_msg("'%s' is none of ours", cases[i]);
    assert_string_equal(machine, "kept");
    assert_string_equal(id, "as-it-was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journal),     cmocka_unit_test(others),  cmocka_unit_test(letters),
        cmocka_unit_test(all_letters), cmocka_unit_test(longest), cmocka_unit_test(too_long),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
