/* nvml.c: two GPUs that do not exist, behind the calls of NVIDIA's library. FAKE_GPU=broken refuses to start.
 */
#include <stdlib.h>
#include <string.h>

struct utilisation {
    unsigned gpu, memory;
};

struct memory {
    unsigned long long total, free, used;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetUtilizationRates(void *device, struct utilisation *out);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);

static char devices[2];

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void)
{
    const char *mood = getenv("FAKE_GPU");
    return mood && strcmp(mood, "broken") == 0 ? 9 : 0;
}

EXPORT int nvmlShutdown(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    const char *mood = getenv("FAKE_GPU");
    *count = mood && strcmp(mood, "none") == 0 ? 0 : 2;
    return 0;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &devices[index % 2];
    return index < 2 ? 0 : 2;
}

EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilisation *out)
{
    *out = (struct utilisation){device == &devices[0] ? 40 : 90, 7};
    return 0;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    *out = (struct memory){16ULL << 30, 0, device == &devices[0] ? 1ULL << 30 : 2ULL << 30};
    return 0;
}
