import Glibc

/// Makes this process run out of a resource, permanently. Only for tests that run in a process of their own.
public enum ResourceLimits {
    /// Limits the process to `count` more descriptors than it has open. A later call with a higher count raises the
    /// limit again.
    public static func limitDescriptors(leaving count: Int32 = 0) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // A new descriptor has the lowest free number, so all numbers below the limit must be taken.
        limit.rlim_cur = min(limit.rlim_max, 1_024)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var taken: [Int32] = []
        for _ in 0..<count { taken.append(dup(STDERR_FILENO)) }
        let next = dup(STDERR_FILENO)
        for descriptor in taken + [next] { close(descriptor) }
        limit.rlim_cur = rlim_t(next)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Makes it impossible to create threads: the default stack of a new thread is larger than the address space.
    public static func preventThreads() {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, 1 << 50)
        // A GNU extension that Swift does not import.
        typealias SetDefault = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
        guard let address = dlsym(nil, "pthread_setattr_default_np") else { return }
        _ = unsafeBitCast(address, to: SetDefault.self)(&attributes)
    }
}
