import Glibc
import NighTestKit
import Testing

@testable import lab

/// Tests that nothing of the lab stays behind on the machine, however the lab ends.
@Suite struct EndingTests {
    /// Ways to end a program. Ctrl-C goes to the whole process group, as from a terminal.
    enum Way: CaseIterable {
        case killed, terminated, interrupted, controlC

        func apply(to process: pid_t) {
            switch self {
            case .killed: kill(process, SIGKILL)
            case .terminated: kill(process, SIGTERM)
            case .interrupted: kill(process, SIGINT)
            case .controlC: kill(-process, SIGINT)
            }
        }
    }

    @Test(arguments: Way.allCases)
    func `Nothing remains when it is ended at work`(by way: Way) async throws {
        let lab = try LabProcess(["--keep", Scenario.standing.name])
        try await until("the lab keeps a network") { lab.output.contains("kept until") }
        // A daemon may write its title over its environment, so what is inside is found by its namespaces.
        let held = HeldNamespaces(of: Machine.processes(with: lab.token))
        let namespaces = held.names.subtracting(Machine.namespaces(of: getpid()))
        // The process namespace, and the networks of the enclosure and of the two hosts.
        #expect(namespaces.filter { $0.hasPrefix("pid:") }.count == 1)
        #expect(namespaces.filter { $0.hasPrefix("net:") }.count == 3)
        // `unshare` and the lab itself; on each of two hosts a D-Bus daemon, an Avahi daemon and a browser. The
        // commands that start the last of them must have ended.
        try await until("eight processes are inside") { Machine.processes(in: namespaces).count == 8 }
        way.apply(to: lab.process)
        let ending = await lab.end(within: .seconds(10))
        #expect(ending == .killed(way == .killed ? SIGKILL : way == .terminated ? SIGTERM : SIGINT))
        try await lab.expectNothing()
        try await until("its namespaces are empty") { Machine.processes(in: namespaces).isEmpty }
        #expect(Machine.hasNothingOfTheLab)
        withExtendedLifetime(held) {}
    }

    @Test(arguments: [1, 5, 10, 20, 30, 40, 60, 80, 120, 200, 400] as [Int])
    func `Nothing remains when it is killed early`(afterMilliseconds milliseconds: Int) async throws {
        try await LabProcess(["--keep", Scenario.standing.name]).killEarly(after: milliseconds)
        #expect(Machine.hasNothingOfTheLab)
    }
}

/// Holds namespaces open, so that the kernel gives their numbers to no others, which another test may have made.
private final class HeldNamespaces {
    private let descriptors: [Int32]
    let names: Set<String>

    init(of processes: [pid_t]) {
        let paths = processes.flatMap(Machine.namespacePaths)
        descriptors = paths.map { open($0, O_RDONLY | O_CLOEXEC) }.filter { $0 >= 0 }
        names = Set(descriptors.compactMap { Machine.link(at: "/proc/self/fd/\($0)") })
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}

/// Inspects this machine through the kernel's file systems.
enum Machine {
    /// All processes with `variable` in their environment.
    static func processes(with variable: String) -> [pid_t] {
        processes.filter { process in
            content(of: "/proc/\(process)/environ").split(separator: 0).contains {
                $0.elementsEqual(variable.utf8)
            }
        }
    }

    /// All processes in one of `namespaces`.
    static func processes(in namespaces: Set<String>) -> [pid_t] {
        processes.filter { !namespaces.isDisjoint(with: Self.namespaces(of: $0)) }
    }

    /// The process namespace and the network namespace of a process.
    static func namespaces(of process: pid_t) -> Set<String> {
        Set(namespacePaths(of: process).compactMap(link))
    }

    static func namespacePaths(of process: pid_t) -> [String] {
        ["pid", "net"].map { "/proc/\(process)/ns/\($0)" }
    }

    /// Whether this machine's own namespace has no interface, mount or named namespace of the lab.
    static var hasNothingOfTheLab: Bool {
        let mounts = String(decoding: content(of: "/proc/self/mountinfo"), as: UTF8.self)
        let interfaces = TemporaryFolder.names(in: "/sys/class/net").filter {
            $0 == "br-lan" || $0.hasSuffix("-eth0")
        }
        return interfaces.isEmpty && !mounts.contains(Lab.folder)
            && !TemporaryFolder.names(in: "/run/netns").contains { ["puma", "lynx"].contains($0) }
    }

    private static var processes: [pid_t] { TemporaryFolder.names(in: "/proc").compactMap { pid_t($0) } }

    static func link(at path: String) -> String? {
        var room = [CChar](repeating: 0, count: 256)
        let count = readlink(path, &room, room.count - 1)
        return count > 0 ? String(decoding: room[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }

    private static func content(of path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 16_384)
        while case let count = read(descriptor, &room, room.count), count > 0 { bytes += room[..<count] }
        return bytes
    }
}
