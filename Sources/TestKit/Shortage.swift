import Glibc

/// Lets a process run out of something, for good: for tests in a process of their own.
public enum Shortage {
    /// From here on no thread can be made: the stack of a new one would be larger than there are addresses.
    public static func ofThreads() {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, 1 << 50)
        // An extension of GNU that Swift does not import.
        typealias SetDefault = @convention(c) (UnsafePointer<pthread_attr_t>) -> Int32
        guard let address = dlsym(nil, "pthread_setattr_default_np") else { return }
        _ = unsafeBitCast(address, to: SetDefault.self)(&attributes)
    }
}
