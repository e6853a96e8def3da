import NighCore

/// What a program with a session takes from the system at the least. Swift's tasks, Avahi's libraries and libuv's first loop stop the program
/// or hang where they get less, so a program asks before it starts its first task.
public enum ProgramNeeds {
    /// Descriptors that must be free: some 25 are for loops, transports and mDNS, the rest for peers and files.
    public static let descriptors = 40
    /// Threads that must be free: one for each loop, those that tasks run on, and one that reads what is typed.
    public static let threads = 12

    /// Why the program cannot run here; nil if it can.
    public static var shortage: NighError? {
        SystemShortage.ofDescriptors(descriptors) ?? SystemShortage.ofThreads(threads)
    }

    /// How a program ends where there is a shortage.
    public static let status: Int32 = 3
}
