// A function that jumps to the one of the same name in another library, whatever its arguments are.

#include <dlfcn.h>
#include <stdlib.h>

#define SLOT(name) slot_##name

#if defined(__x86_64__)
#define JUMP(name) "jmp *slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, slot_" #name "\nldr x16, [x16, :lo12:slot_" #name "]\nbr x16\n"
#else
#error "no jump is written for this processor"
#endif

#define FORWARD(name) \
    __attribute__((visibility("hidden"))) void *SLOT(name); \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP(name));
