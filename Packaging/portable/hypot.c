// The C library 2.35 has new versions of these two functions, and a program that is linked with it asks for them. This program
// has its own, so that it starts with 2.34. `hypotl` has one version since 2.2.5.

#include <math.h>

double hypot(double x, double y) { return (double)hypotl(x, y); }
float hypotf(float x, float y) { return (float)hypotl(x, y); }
