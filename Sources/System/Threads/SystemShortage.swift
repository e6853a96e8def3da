import Glibc
import NighCore

/// Checks whether the system has enough descriptors or threads left.
///
/// Call it before work that would stop the program, or never end, if the system ran out halfway. The check releases
/// everything at once, so its result is no guarantee: another part of the program may take it.
package enum SystemShortage {
    /// Returns why `count` more descriptors cannot be opened, or nil if they can.
    package static func ofDescriptors(_ count: Int) -> NighError? {
        var taken: [Int32] = []
        defer { for descriptor in taken { close(descriptor) } }
        while taken.count < count {
            let next = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard next >= 0 else {
                let number = errno
                // Another error says nothing about descriptors, for example that the program may not read the folder.
                guard [EMFILE, ENFILE, ENOMEM].contains(number) else { return nil }
                return NighError(
                    .starting,
                    .system(number, "only \(taken.count) of the \(count) descriptors needed can be opened"),
                    advice: "too many descriptors are open: raise `ulimit -n`")
            }
            taken.append(next)
        }
        return nil
    }

    /// Returns why `count` more threads cannot be started, or nil if they can.
    package static func ofThreads(_ count: Int) -> NighError? {
        let gate = Guarded(())
        var threads: [LoopThread] = []
        defer { for thread in threads { thread.join() } }
        return gate.withLock { _ in
            while threads.count < count {
                let thread = LoopThread()
                do throws(NighError) {
                    // Each thread waits for the gate, so all of them exist at the same time.
                    try thread.start { gate.withLock { _ in } }
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
