import NighCore
import NighSystem

/// The least that a program with a session needs from the system.
///
/// With less, Swift's tasks, Avahi's libraries and libuv's first loop stop the program or hang. So a program asks
/// before it starts its first task.
public enum SystemRequirements {
    /// The descriptors that must be free: about 25 for loops, transports and mDNS, the rest for peers and files.
    public static let descriptors = 40
    /// The threads that must be free: one for each loop, those that tasks run on, one that reads the keyboard, and one
    /// that writes.
    public static let threads = 13

    /// Why the program cannot run here, or nil if it can.
    public static var shortage: NighError? {
        SystemShortage.ofDescriptors(descriptors) ?? SystemShortage.ofThreads(threads)
    }

    /// The exit status of a program when there is a shortage.
    public static let exitStatus: Int32 = 3
}
