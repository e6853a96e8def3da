import Glibc

/// Finds out whether the system has something to give before work begins that stops the program, or never ends, where it runs out in
/// the middle. What is found is given back at once, so it is no promise: another part of the program may take it.
package enum SystemShortage {
    /// Why `count` more descriptors cannot be opened; nil if they can.
    package static func ofDescriptors(_ count: Int) -> NighError? {
        var taken: [Int32] = []
        defer { for descriptor in taken { close(descriptor) } }
        while taken.count < count {
            let next = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard next >= 0 else {
                return NighError(
                    .starting,
                    .system(errno, "only \(taken.count) of the \(count) descriptors needed can be opened"),
                    advice: "too many descriptors are open: raise `ulimit -n`")
            }
            taken.append(next)
        }
        return nil
    }

    /// Why `count` more threads cannot be started; nil if they can.
    package static func ofThreads(_ count: Int) -> NighError? {
        let gate = Lock()
        var threads: [LoopThread] = []
        defer { for thread in threads { thread.join() } }
        return gate.withLock {
            while threads.count < count {
                let thread = LoopThread()
                do throws(NighError) {
                    // All of them wait for the gate, so all are there at once.
                    try thread.start { gate.withLock {} }
                } catch {
                    return NighError(
                        .starting,
                        .system(
                            EAGAIN, "only \(threads.count) of the \(count) threads needed can be started"),
                        advice: error.advice)
                }
                threads.append(thread)
            }
            return nil
        }
    }
}
