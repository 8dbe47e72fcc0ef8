/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a data file before LMDB maps it. LMDB takes an empty file for a new store, and a page
 * beyond the file's end is a SIGBUS; so both meta pages are read by hand, and every page in use
 * must lie within the file. Reads only; any thread, before the environment is open.
 *
 * A healthy file may be shorter than its last page number says: pages that one transaction took at
 * the end and gave back are listed as free and never written. So when the file is short, each
 * missing page must be in the free list.
 *
 * The structs below are LMDB's, data version 1, in the machine's own byte order and word size. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>

#include "base/base.h"
#include "lmdb/env.h"

#define MAGIC 0xBEEFC0DEu
#define DATA_VERSION 1u
#define PAGE_BRANCH 0x01u
#define PAGE_LEAF 0x02u
#define PAGE_META 0x08u
#define NODE_OVERFLOW 0x01u
#define PAGE_SIZE_MIN 512u
#define PAGE_SIZE_MAX 65536u
#define DEPTH_MAX 32 /* LMDB's own stack of pages */
#define LOOKS_MAX 10 /* a writer may commit while we look */

struct page_head {
    size_t number;
    uint16_t pad;
    uint16_t flags;
    uint16_t lower; /* end of the node offsets; with `upper`, an overflow page's number of pages */
    uint16_t upper;
};

struct tree {
    uint32_t pad; /* of the free tree: the page size */
    uint16_t flags;
    uint16_t depth;
    size_t branch_pages, leaf_pages, overflow_pages, entries;
    size_t root;
};

struct meta {
    uint32_t magic;
    uint32_t version;
    void *address;
    size_t map_bytes;
    struct tree free_tree;
    struct tree main_tree;
    size_t last_page;
    size_t txn;
};

struct node {
    uint16_t low, high; /* size of the data, or a child's page number */
    uint16_t flags;
    uint16_t key_size;
};

static_assert(sizeof(struct page_head) == sizeof(size_t) + 8, "as LMDB lays it out");
static_assert(sizeof(struct tree) == 8 + 5 * sizeof(size_t), "as LMDB lays it out");

struct look {
    int file;
    uint64_t bytes;
    size_t page_size;
    size_t pages;        /* whole pages in the file */
    size_t visits_left;  /* bounds the walk of a tree that bites its tail */
    size_t missing_free; /* pages beyond the file's end that the free list names */
    struct meta meta;    /* the newer one */
};

static pawl_err read_meta(struct look *look, uint64_t at, struct meta *meta)
{
    struct page_head head = { 0 };
    uint8_t bytes[sizeof(head) + sizeof(*meta)] = { 0 };
    if (pread(look->file, bytes, sizeof(bytes), (off_t)at) != (ssize_t)sizeof(bytes))
        return PAWL_E_CORRUPT;
    memcpy(&head, bytes, sizeof(head));
    memcpy(meta, bytes + sizeof(head), sizeof(*meta));
    size_t page_size = meta->free_tree.pad;
    bool sane = (head.flags & PAGE_META) != 0 && meta->magic == MAGIC &&
                meta->version == DATA_VERSION && page_size >= PAGE_SIZE_MIN &&
                page_size <= PAGE_SIZE_MAX && (page_size & (page_size - 1)) == 0 &&
                meta->last_page < SIZE_MAX / page_size;
    return sane ? PAWL_OK : PAWL_E_CORRUPT;
}

/* LMDB itself asks that both are sound. The file's size is read after them: a writer writes in the
 * other order. */
static pawl_err read_metas(struct look *look, pawl_why *why)
{
    struct meta metas[2] = { { 0 } };
    struct stat status = { 0 };
    pawl_err err = read_meta(look, 0, &metas[0]);
    if (err == PAWL_OK)
        err = read_meta(look, metas[0].free_tree.pad, &metas[1]);
    if (err == PAWL_OK && metas[0].free_tree.pad != metas[1].free_tree.pad)
        err = PAWL_E_CORRUPT;
    if (fstat(look->file, &status) != 0)
        return pw_fail(why, PAWL_E_IO, "data.mdb: %s", strerror(errno));
    look->bytes = (uint64_t)status.st_size;
    if (err != PAWL_OK)
        return pw_fail(why, err, "data.mdb (%llu bytes) has no sound head",
                       (unsigned long long)look->bytes);
    look->meta = metas[metas[1].txn > metas[0].txn];
    look->page_size = metas[0].free_tree.pad;
    look->pages = (size_t)(look->bytes / look->page_size);
    return PAWL_OK;
}

/* One record of the free list: a count, then so many page numbers. */
static void count_missing(struct look *look, const uint8_t *list, size_t size)
{
    size_t count = 0;
    if (size < sizeof(count))
        return;
    memcpy(&count, list, sizeof(count));
    if (count > size / sizeof(size_t) - 1)
        return;
    for (size_t i = 1; i <= count; i++) {
        size_t page = 0;
        memcpy(&page, list + i * sizeof(page), sizeof(page));
        if (page >= look->pages && page <= look->meta.last_page)
            look->missing_free++;
    }
}

/* `count` pages from `page` on, which must be in the file. *bytes is the caller's. */
static pawl_err read_pages(struct look *look, size_t page, size_t count, uint8_t **bytes)
{
    if (page >= look->pages || count > look->pages - page || count > look->visits_left)
        return PAWL_E_CORRUPT;
    look->visits_left -= count;
    size_t size = count * look->page_size;
    uint8_t *read = pw_alloc(size);
    if (read == NULL)
        return PAWL_E_NOMEM;
    if (pread(look->file, read, size, (off_t)(page * look->page_size)) != (ssize_t)size) {
        pw_free(read);
        return PAWL_E_CORRUPT;
    }
    *bytes = read;
    return PAWL_OK;
}

static pawl_err count_overflow(struct look *look, const uint8_t *number, size_t size)
{
    size_t page = 0;
    memcpy(&page, number, sizeof(page));
    size_t head = sizeof(struct page_head);
    uint8_t *bytes = NULL;
    pawl_err err =
        read_pages(look, page, (head + size + look->page_size - 1) / look->page_size, &bytes);
    if (err == PAWL_OK)
        count_missing(look, bytes + head, size);
    pw_free(bytes);
    return err;
}

/* The data of a leaf's node at `at`. */
static pawl_err count_node(struct look *look, const uint8_t *bytes, size_t at, struct node node)
{
    size_t size = node.low | (size_t)node.high << 16;
    size_t data = at + sizeof(node) + node.key_size;
    bool far = (node.flags & NODE_OVERFLOW) != 0;
    if (data + (far ? sizeof(size_t) : size) > look->page_size)
        return PAWL_E_CORRUPT;
    if (far)
        return count_overflow(look, bytes + data, size);
    count_missing(look, bytes + data, size);
    return PAWL_OK;
}

static size_t child_of(struct node node)
{
    size_t page = node.low | (size_t)node.high << 16;
#if SIZE_MAX > UINT32_MAX
    page |= (size_t)node.flags << 32;
#endif
    return page;
}

static bool node_at(const struct look *look, const uint8_t *bytes, size_t index, size_t *at,
                    struct node *node)
{
    uint16_t offset = 0;
    memcpy(&offset, bytes + sizeof(struct page_head) + index * sizeof(offset), sizeof(offset));
    if (offset + sizeof(*node) > look->page_size)
        return false;
    memcpy(node, bytes + offset, sizeof(*node));
    *at = offset;
    return true;
}

/* Recursive, at most DEPTH_MAX deep: one page in memory for each level. */
static pawl_err walk(struct look *look, size_t page, unsigned depth)
{
    struct page_head head = { 0 };
    uint8_t *bytes = NULL;
    pawl_err err = depth < DEPTH_MAX ? read_pages(look, page, 1, &bytes) : PAWL_E_CORRUPT;
    if (err != PAWL_OK)
        return err;
    memcpy(&head, bytes, sizeof(head));
    bool leaf = (head.flags & PAGE_LEAF) != 0;
    bool sane = head.number == page && (leaf || (head.flags & PAGE_BRANCH) != 0) &&
                head.lower >= sizeof(head) && head.lower <= look->page_size;
    size_t nodes = sane ? (head.lower - sizeof(head)) / sizeof(uint16_t) : 0;
    err = sane ? PAWL_OK : PAWL_E_CORRUPT;
    for (size_t i = 0; i < nodes && err == PAWL_OK; i++) {
        size_t at = 0;
        struct node node = { 0 };
        if (!node_at(look, bytes, i, &at, &node))
            err = PAWL_E_CORRUPT;
        else
            err = leaf ? count_node(look, bytes, at, node) : walk(look, child_of(node), depth + 1);
    }
    pw_free(bytes);
    return err;
}

/* PAWL_OK when every page in use is in the file. */
static pawl_err check_whole(struct look *look)
{
    size_t pages = look->meta.last_page + 1;
    if (pages <= look->pages)
        return PAWL_OK;
    look->missing_free = 0;
    look->visits_left = look->pages;
    pawl_err err = walk(look, look->meta.free_tree.root, 0);
    if (err == PAWL_OK && look->missing_free != pages - look->pages)
        err = PAWL_E_CORRUPT;
    return err;
}

static pawl_err check_file(struct look *look, pawl_why *why)
{
    size_t txn = SIZE_MAX;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        pawl_err err = read_metas(look, why);
        if (err != PAWL_OK)
            return err;
        err = check_whole(look);
        if (err == PAWL_OK)
            return PAWL_OK;
        if (err == PAWL_E_NOMEM)
            return pw_fail(why, err, "check data.mdb: out of memory");
        if (look->meta.txn == txn) /* nobody wrote meanwhile */
            break;
        txn = look->meta.txn;
    }
    return pw_fail(why, PAWL_E_CORRUPT, "data.mdb is cut: %llu bytes of %llu",
                   (unsigned long long)look->bytes,
                   ((unsigned long long)look->meta.last_page + 1) * look->page_size);
}

pawl_err pw_lmdb_check(const char *dir, uint64_t *bytes, pawl_why *why)
{
    char path[PW_PATH_MAX] = "";
    pw_print(path, sizeof(path), "%s/data.mdb", dir);
    struct look look = { .file = open(path, O_RDONLY | O_CLOEXEC) };
    if (look.file < 0 && errno == ENOENT)
        return pw_fail(why, PAWL_E_CORRUPT, "%s: the directory is there, data.mdb is missing", dir);
    if (look.file < 0)
        return pw_fail(why, pw_lmdb_err(errno), "open %s: %s", path, strerror(errno));
    pawl_err err = check_file(&look, why);
    (void)close(look.file); /* read only */
    if (err != PAWL_OK)
        return pw_fail_in(why, err, "%s", dir);
    *bytes = look.bytes;
    return PAWL_OK;
}
