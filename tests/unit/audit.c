/* SPDX-License-Identifier: Apache-2.0
 *
 * src/examples/md5list and package: lines as md5sum takes them, and packages of a small fake tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "examples/md5list.h"
#include "examples/package.h"
#include "support/test.h"

#define HELLO "b1946ac92492d2347c6235b4d2611184" /* of "hello\n" */
#define OTHER "d41d8cd98f00b204e9800998ecf8427e" /* of nothing */

/* --- lines -------------------------------------------------------------------------------- */

static void lines_are_read_as_md5sum_reads_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum md5list_kind kind;
        const char *name;
    } cases[] = {
        { HELLO "  usr/bin/x", MD5LIST_FILE, "usr/bin/x" },
        { HELLO " *usr/bin/x", MD5LIST_FILE, "usr/bin/x" },
        { HELLO "   x", MD5LIST_FILE, " x" },
        { HELLO "  a b ", MD5LIST_FILE, "a b " },
        { " \t" HELLO "\t x", MD5LIST_FILE, "x" },
        { "B1946AC92492D2347C6235B4D2611184  x", MD5LIST_FILE, "x" },
        { "\\" HELLO "  a\\nb\\\\c\\rd", MD5LIST_FILE, "a\nb\\c\rd" },
        { "  \\" HELLO "  a\\nb", MD5LIST_FILE, "a\nb" },
        { HELLO "  a\\nb", MD5LIST_FILE, "a\\nb" },
        { "", MD5LIST_NOTHING, NULL },
        { "# a comment", MD5LIST_NOTHING, NULL },
        { " # none", MD5LIST_BAD, NULL },
        { "\\" HELLO "  a\\qb", MD5LIST_BAD, NULL },
        { "\\" HELLO "  a\\", MD5LIST_BAD, NULL },
        { HELLO, MD5LIST_BAD, NULL },
        { HELLO " ", MD5LIST_BAD, NULL },
        { HELLO "  ", MD5LIST_BAD, NULL },
        { HELLO " x", MD5LIST_BAD, NULL },
        { HELLO "0  x", MD5LIST_BAD, NULL },
        { "b1946ac9", MD5LIST_BAD, NULL },
        { "g1946ac92492d2347c6235b4d2611184  x", MD5LIST_BAD, NULL },
        { "MD5 (x) = " HELLO, MD5LIST_BAD, NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct md5list_line line = { .listed = NULL };
        enum md5list_kind kind = md5list_parse(cases[i].text, &line);
        if (kind != cases[i].kind)
            print_error("case %zu: '%s'\n", i, cases[i].text);
        assert_int_equal(kind, cases[i].kind);
        if (kind == MD5LIST_FILE)
            assert_string_equal(line.name, cases[i].name);
    }
}

static void a_line_gives_its_digest_and_the_name_as_listed(void **state)
{
    (void)state;
    static const uint8_t hello[16] = { 0xb1, 0x94, 0x6a, 0xc9, 0x24, 0x92, 0xd2, 0x34,
                                       0x7c, 0x62, 0x35, 0xb4, 0xd2, 0x61, 0x11, 0x84 };
    struct md5list_line line = { .listed = NULL };
    assert_int_equal(md5list_parse("\\" HELLO "  a\\nb", &line), MD5LIST_FILE);
    assert_memory_equal(line.digest, hello, sizeof(hello));
    assert_string_equal(line.listed, "a\\nb");
}

static void a_name_has_a_limit(void **state)
{
    (void)state;
    static char text[2 * MD5LIST_NAME_MAX];
    struct md5list_line line = { .listed = NULL };
    size_t prefix = (size_t)snprintf(text, sizeof(text), "%s  ", HELLO);
    memset(text + prefix, 'x', MD5LIST_NAME_MAX - 1);
    assert_int_equal(md5list_parse(text, &line), MD5LIST_FILE);
    assert_int_equal(strlen(line.name), MD5LIST_NAME_MAX - 1);
    text[prefix + MD5LIST_NAME_MAX - 1] = 'x';
    assert_int_equal(md5list_parse(text, &line), MD5LIST_BAD);
}

/* --- packages: the test runs in a scratch folder with the folders info and root ----------- */

static char scratch[] = "/tmp/pawl-audit-XXXXXX";
static int home = -1;
static struct package_report report;
static int files_left; /* until give_up() says so */

static bool give_up(const void *arg)
{
    (void)arg;
    return files_left-- == 0;
}

static enum package_verdict check(const char *package)
{
    const struct package_audit audit = { .info = "info", .root = "root", .give_up = give_up };
    return package_check(&audit, package, &report);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_list(const char *text)
{
    write_file("info/p.md5sums", text);
}

static void assert_report(const char *text)
{
    assert_int_equal(report.size, strlen(text));
    assert_memory_equal(report.text, text, report.size);
}

static int setup(void **state)
{
    (void)state;
    files_left = 1000000;
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    memcpy(scratch + sizeof(scratch) - 7, "XXXXXX", 6);
    if (home < 0 || mkdtemp(scratch) == NULL || chdir(scratch) != 0 || mkdir("info", 0700) != 0 ||
        mkdir("root", 0700) != 0 || mkdir("root/folder", 0700) != 0)
        return -1;
    write_file("root/good", "hello\n");
    write_file("root/new\nline", "hello\n");
    write_file("outside", "hello\n");
    return symlink("good", "root/link") == 0 && symlink("gone", "root/dangling") == 0 &&
                   mkfifo("root/pipe", 0600) == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const paths[] = { "info/p.md5sums",  "info",        "root/good",
                                         "root/new\nline",  "root/link",   "root/dangling",
                                         "root/pipe",       "root/folder", "root",
                                         "outside.md5sums", "outside" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (remove(paths[i]) != 0 && errno != ENOENT)
            return -1;
    int back = fchdir(home);
    (void)close(home);
    return back == 0 ? rmdir(scratch) : -1;
}

static void a_package_whose_files_are_right_is_intact(void **state)
{
    (void)state;
    write_list(HELLO "  good\n\n# comment\n" HELLO " *link\r\n\\" HELLO "  new\\nline\n" HELLO
                     "  ../outside");
    assert_int_equal(check("p"), PACKAGE_INTACT);
    assert_report("");
    write_list("");
    assert_int_equal(check("p"), PACKAGE_INTACT);
}

static void what_is_wrong_missing_or_no_file_is_altered(void **state)
{
    (void)state;
    write_list(HELLO "  good\n" OTHER "  good\n" HELLO "  gone\n" HELLO "  dangling\n" OTHER
                     "  pipe\n" HELLO "  folder\n\\" OTHER "  new\\nline\nnonsense\n" HELLO
                     "  good/x\n");
    assert_int_equal(check("p"), PACKAGE_ALTERED);
    assert_report("good\ngone\ndangling\npipe\nfolder\nnew\\nline\nnonsense\ngood/x\n");
}

static void a_package_without_a_list_is_unlisted(void **state)
{
    (void)state;
    assert_int_equal(check("p"), PACKAGE_UNLISTED);
}

static void a_name_stays_in_the_info_directory(void **state)
{
    (void)state;
    write_file("outside.md5sums", "");
    assert_int_equal(check("../outside"), PACKAGE_BAD_NAME);
    assert_int_equal(check("/outside"), PACKAGE_BAD_NAME);
    assert_int_equal(check(".."), PACKAGE_BAD_NAME);
    assert_int_equal(check(""), PACKAGE_BAD_NAME);
    assert_int_equal(check("-p"), PACKAGE_UNLISTED);
}

static void a_long_list_is_given_up_between_files(void **state)
{
    (void)state;
    write_list(HELLO "  good\n" OTHER "  good\n" HELLO "  good\n");
    files_left = 2;
    assert_int_equal(check("p"), PACKAGE_CANCELLED);
}

static void out_of_descriptors_is_not_altered(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit low = limit;
    write_list(HELLO "  good\n");
    int next = dup(home);
    assert_true(next >= 0);
    assert_int_equal(close(next), 0);
    /* The list, then also the root directory, then also the file cannot be opened. */
    for (rlim_t room = 0; room < 3; room++) {
        low.rlim_cur = (rlim_t)next + room;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        enum package_verdict verdict = check("p");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(verdict, PACKAGE_UNREAD);
        assert_non_null(strstr(report.why, "Too many open files"));
    }
    assert_int_equal(check("p"), PACKAGE_INTACT);
}

static void an_overlong_line_is_altered(void **state)
{
    (void)state;
    static char text[3 * MD5LIST_LINE_MAX];
    memset(text, 'x', sizeof(text) - 2);
    text[sizeof(text) - 2] = '\n';
    write_list(text);
    assert_int_equal(check("p"), PACKAGE_ALTERED);
}

static void a_long_report_ends_in_how_many_more(void **state)
{
    (void)state;
    enum { NAMES = 3000, NAME = 100 };
    FILE *list = fopen("info/p.md5sums", "w");
    assert_non_null(list);
    for (int i = 0; i < NAMES; i++)
        assert_true(fprintf(list, "%s  %0*d\n", HELLO, NAME - 1, i) > 0);
    assert_int_equal(fclose(list), 0);
    assert_int_equal(check("p"), PACKAGE_ALTERED);
    assert_true(report.size <= PACKAGE_REPORT_MAX);
    assert_true(report.size > PACKAGE_REPORT_MAX - 2 * (size_t)NAME);
    char tail[64];
    size_t named = report.size / NAME;
    int size = snprintf(tail, sizeof(tail), "\n... and %zu more\n", NAMES - named);
    assert_memory_equal(report.text + report.size - (size_t)size, tail, (size_t)size);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_as_md5sum_reads_them),
        cmocka_unit_test(a_line_gives_its_digest_and_the_name_as_listed),
        cmocka_unit_test(a_name_has_a_limit),
        CASE(a_package_whose_files_are_right_is_intact),
        CASE(what_is_wrong_missing_or_no_file_is_altered),
        CASE(a_package_without_a_list_is_unlisted),
        CASE(a_name_stays_in_the_info_directory),
        CASE(a_long_list_is_given_up_between_files),
        CASE(out_of_descriptors_is_not_altered),
        CASE(an_overlong_line_is_altered),
        CASE(a_long_report_ends_in_how_many_more),
    };
    return cmocka_run_group_tests(tests, leaks_begin, leaks_end);
}
