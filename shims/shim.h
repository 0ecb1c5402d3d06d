/* What tool.c and client.c share: the system's calls and a few words on strings. Linux on x86-64 and AArch64, without a
 * C library, whose start takes longer than all that is done here. */
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "tool.sh serves this machine"
#endif

static inline long sys(long number, long a, long b, long c, long d) { return sys6(number, a, b, c, d, 0, 0); }

enum { HERE = -100 /* AT_FDCWD */, CLOSE_ON_EXEC = 02000000 };

/* Appends, and gives the new end; null when there is no room. */
static inline char *add(char *to, const char *limit, const char *text) {
  while (to && *text && to + 1 < limit) *to++ = *text++;
  if (!to || *text) return 0;
  *to = 0;
  return to;
}

/* What follows `start` in `text`; null when it does not begin so. */
static inline char *after(const char *text, const char *start) {
  while (*start && *text == *start) text++, start++;
  return *start ? 0 : (char *)text;
}

static inline int same_file(const char *one, const char *other) {
  unsigned long a[32], b[32]; /* struct stat begins with st_dev and st_ino on both machines */
  return !sys(SYS_newfstatat, HERE, (long)one, (long)a, 0) && !sys(SYS_newfstatat, HERE, (long)other, (long)b, 0) &&
         a[0] == b[0] && a[1] == b[1];
}

static inline long length(const char *text) {
  long size = 0;
  while (text[size]) size++;
  return size;
}

static inline int same(const char *one, const char *other) {
  char *rest = after(one, other);
  return rest && !*rest;
}

/* The number in decimal digits, in a place that is used again. */
static inline char *digits(long number) {
  static char place[24];
  char *at = place + sizeof place - 1;
  long left = number < 0 ? -number : number;
  do *--at = '0' + left % 10;
  while (left /= 10);
  if (number < 0) *--at = '-';
  return at;
}

static inline const char *variable(char **environment, const char *name) {
  for (; *environment; environment++) {
    char *rest = after(*environment, name);
    if (rest && *rest == '=') return rest + 1;
  }
  return "";
}

/* A call that may be some business of a server's, and the program that is to run for it. */
struct call {
  const char *kind;   /* see docs/protocol.md */
  char **words;       /* what the server is told of it */
  char **environment; /* of this process */
  const char *file;   /* the program, */
  char **argv;        /* its words */
  char **envp;        /* and its environment */
  long caller;        /* the process id of the shell that called a tool, else 0 */
};

/* Between `readcache off` and `readcache on`. */
int is_switched_off(char **environment);

/* Runs the program and prints what the server leaves of its output, and ends with its status. Comes back where that is not
 * to be: with 1 where the program is to run by itself, with 0 where there is nobody to ask. */
int serve(struct call *call, const char *directory);

/* Prints what the server answers to the event of a hook on stdin, and ends. Comes back where there is none that answers,
 * with the event on stdin. */
void answer_hook(struct call *call, const char *directory);
