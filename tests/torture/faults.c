/* Faults on demand, preloaded into a process (LD_PRELOAD): the n-th change that the process makes below a directory
 * kills it, or fails. Every call of the C library that changes a file system is a step, so SQLite's are, too.
 *
 * faults_arm() begins to count in the calling process; programs that it starts are left alone.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { KILL = -1, TEAR = -2, COUNT = 0 }; /* anything above is an errno */
enum { CREATE = 1, WRITE = 2, REMOVE = 4, CHANGE = 8, SYNC = 16 };

static struct {
    pid_t process;
    long step;
    int action;
    int sticky;
    int kinds;
    char root[PATH_MAX];
} plan;
static long steps;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int busy;

void faults_arm(const char *root, long step, int action, int sticky, int kinds)
{
    snprintf(plan.root, sizeof plan.root, "%s/", root);
    plan.step = step;
    plan.action = action;
    plan.sticky = sticky;
    plan.kinds = kinds;
    steps = 0;
    plan.process = getpid();
}

long faults_steps(void) { return steps; }

static int below(const char *path) { return strncmp(path, plan.root, strlen(plan.root)) == 0; }

static int concerns(int descriptor, const char *path)
{
    char link[64], place[PATH_MAX];
    if (path && path[0] == '/')
        return below(path);
    if (descriptor < 0)
        return 0; /* relative to the working directory: not ours */
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, place, sizeof place - 2);
    if (length < 0)
        return 0;
    place[length] = '/'; /* so that the directory itself is below itself */
    place[length + 1] = 0;
    return below(place);
}

/* Whether this call has to fail (errno is set); does not return where it has to kill. `torn` tells the writers that
 * they have to write a part, and then call die(). */
static int step(int kind, int descriptor, const char *path, int *torn)
{
    if (plan.process == 0 || busy || plan.process != getpid() || !(plan.kinds & kind))
        return 0;
    busy = 1;
    int ours = concerns(descriptor, path), fails = 0, saved = errno;
    if (ours) {
        pthread_mutex_lock(&mutex);
        long now = ++steps;
        pthread_mutex_unlock(&mutex);
        int due = now == plan.step || (plan.sticky && now > plan.step);
        if (due && plan.action == KILL)
            kill(getpid(), SIGKILL);
        if (due && plan.action == TEAR && torn)
            *torn = 1;
        fails = due && plan.action > 0;
    }
    busy = 0;
    errno = fails ? plan.action : saved;
    return fails;
}

static void die(void) { kill(getpid(), SIGKILL); }

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

#define OPENS(name)                                                          \
    int name(const char *path, int flags, ...)                               \
    {                                                                        \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                        \
        if (flags & (O_CREAT | O_TRUNC) && step(CREATE, -1, path, NULL))     \
            return -1;                                                       \
        return REAL(name)(path, flags, mode);                                \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                       \
    int name(int directory, const char *path, int flags, ...)                \
    {                                                                        \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                        \
        if (flags & (O_CREAT | O_TRUNC) && step(CREATE, directory, path, NULL)) \
            return -1;                                                       \
        return REAL(name)(directory, path, flags, mode);                     \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

ssize_t write(int descriptor, const void *data, size_t size)
{
    int torn = 0;
    if (step(WRITE, descriptor, NULL, &torn))
        return -1;
    ssize_t written = REAL(write)(descriptor, data, torn ? size / 2 : size);
    if (torn)
        die();
    return written;
}

#define WRITES_AT(name, offset_type)                                                           \
    ssize_t name(int descriptor, const void *data, size_t size, offset_type offset)            \
    {                                                                                          \
        int torn = 0;                                                                          \
        if (step(WRITE, descriptor, NULL, &torn))                                              \
            return -1;                                                                         \
        ssize_t written = REAL(name)(descriptor, data, torn ? size / 2 : size, offset);        \
        if (torn)                                                                              \
            die();                                                                             \
        return written;                                                                        \
    }
WRITES_AT(pwrite, off_t)
WRITES_AT(pwrite64, off64_t)

/* One change of one path, one of a descriptor, and one that makes a second path. */
#define PATH(kind, result, name, parameters, directory, path, ...) \
    result name parameters                                         \
    {                                                              \
        if (step(kind, directory, path, NULL))                     \
            return -1;                                             \
        return REAL(name)(__VA_ARGS__);                            \
    }

PATH(CREATE, int, mkdir, (const char *path, mode_t mode), -1, path, path, mode)
PATH(CREATE, int, mkdirat, (int directory, const char *path, mode_t mode), directory, path, directory, path, mode)
PATH(CREATE, int, link, (const char *from, const char *to), -1, to, from, to)
PATH(CREATE, int, linkat, (int a, const char *from, int b, const char *to, int flags), b, to, a, from, b, to, flags)
PATH(CREATE, int, symlink, (const char *target, const char *path), -1, path, target, path)
PATH(CREATE, int, symlinkat, (const char *target, int directory, const char *path), directory, path, target, directory, path)
PATH(CREATE, int, rename, (const char *from, const char *to), -1, to, from, to)
PATH(CREATE, int, renameat, (int a, const char *from, int b, const char *to), b, to, a, from, b, to)
PATH(CREATE, int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), b, to, a, from, b, to, flags)
PATH(REMOVE, int, unlink, (const char *path), -1, path, path)
PATH(REMOVE, int, unlinkat, (int directory, const char *path, int flags), directory, path, directory, path, flags)
PATH(REMOVE, int, rmdir, (const char *path), -1, path, path)
PATH(CHANGE, int, chmod, (const char *path, mode_t mode), -1, path, path, mode)
PATH(CHANGE, int, fchmod, (int file, mode_t mode), file, NULL, file, mode)
PATH(CHANGE, int, fchmodat, (int directory, const char *path, mode_t mode, int flags), directory, path, directory, path, mode, flags)
PATH(CHANGE, int, utimensat, (int directory, const char *path, const struct timespec times[2], int flags), directory, path, directory, path, times, flags)
PATH(CHANGE, int, futimens, (int file, const struct timespec times[2]), file, NULL, file, times)
PATH(WRITE, int, ftruncate, (int file, off_t size), file, NULL, file, size)
PATH(WRITE, int, ftruncate64, (int file, off64_t size), file, NULL, file, size)
PATH(WRITE, int, truncate, (const char *path, off_t size), -1, path, path, size)
PATH(WRITE, int, truncate64, (const char *path, off64_t size), -1, path, path, size)
PATH(SYNC, int, fsync, (int file), file, NULL, file)
PATH(SYNC, int, fdatasync, (int file), file, NULL, file)
PATH(SYNC, int, syncfs, (int file), file, NULL, file)

#define ALLOCATES(name, offset_type)                            \
    int name(int file, offset_type offset, offset_type length)  \
    {                                                           \
        if (step(WRITE, file, NULL, NULL))                      \
            return errno; /* as posix_fallocate(3) does */      \
        return REAL(name)(file, offset, length);                \
    }
ALLOCATES(posix_fallocate, off_t)
ALLOCATES(posix_fallocate64, off64_t)

ssize_t sendfile(int to, int from, off_t *offset, size_t count)
{
    if (step(WRITE, to, NULL, NULL))
        return -1;
    return REAL(sendfile)(to, from, offset, count);
}

ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t count, unsigned flags)
{
    if (step(WRITE, to, NULL, NULL))
        return -1;
    return REAL(copy_file_range)(from, a, to, b, count, flags);
}
