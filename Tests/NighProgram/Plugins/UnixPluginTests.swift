import ChildPrograms
import Glibc
import NighCore
import NighTestKit
import Testing

/// A plugin with the transport `unix`, and a folder in which its users meet.
struct UnixPlugin {
    /// The path of the library.
    let path: String
    let meetingPlace = TemporaryFolder()
    var spec: String { "unix:folder=\(meetingPlace.path)" }

    /// Builds the plugin of Examples/UnixTransport.
    init() throws { path = try BuiltPackages.build("Examples/UnixTransport") + "/libUnixTransport.so" }

    /// Returns the folder with the plugin that breaks rules, the plugin with its own copy of Nigh, and a
    /// program that does not export its Nigh.
    static func ruleBreakers() throws -> String {
        let example = ["Folder", "Presence", "UnixSocket", "UnixTransport"]
            .map { "Examples/UnixTransport/Sources/UnixTransport/\($0).swift" }
        return try BuiltPackages.assemble(
            "RuleBreaker", with: example + ["Tests/Core/TransportChecks/RuleBreaker.swift"])
    }

    /// The options with which a command uses the plugin.
    var options: String { "--plugin \(path) -t \(spec)" }

    /// Starts a `nigh host` that can be found in the folder.
    func host() throws -> Child {
        let host = try NighUser().start("host --name Puma --identity ephemeral --json-lines \(options)")
        try host.line(with: "\"listening\"")
        return host
    }

    /// Copies the plugin to `path`.
    func install(to path: String) throws {
        try Child.run("/usr/bin/install", ["-m", "755", self.path, path])
    }
}

/// Tests the transport of Examples/UnixTransport, a package of its own, in the programs of this package.
@Suite("A transport as a plugin", .callsPrograms) struct UnixPluginTests {
    private let user = NighUser()

    /// A listener that accepts nobody and whose backlog is full, so that every dial waits.
    private final class FullListener {
        private var descriptors: [Int32] = []

        init(at path: String) throws {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            for number in 0..<3 {
                let descriptor = socket(
                    AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
                descriptors.append(descriptor)
                let status = withUnsafePointer(to: address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
                        return number == 0 ? bind(descriptor, $0, size) : connect(descriptor, $0, size)
                    }
                }
                if number == 0 { try #require(status == 0 && listen(descriptor, 0) == 0) }
            }
        }

        deinit { for descriptor in descriptors { close(descriptor) } }
    }

    /// Runs the checks, and expects that all of them pass.
    private func conformance(of unix: UnixPlugin, _ options: String, count: Int) throws {
        let line = "conformance --plugin \(unix.path) \(unix.spec) --json \(options)"
        let checks = try user.start(line, patience: 900).finish().json["checks"].list
        #expect(checks.count == count)
        for check in checks where check["verdict"].string != "passed" { Issue.record("\(check)") }
    }

    @Test func `passes every check of transports and of sessions`() throws {
        let unix = try UnixPlugin()
        let silent = "\(unix.meetingPlace.path)/silent"
        let listener = try FullListener(at: silent)
        defer { withExtendedLifetime(listener) {} }
        try conformance(of: unix, "--silent unix://\(silent)", count: TransportConformance.checks.count)
        try conformance(of: UnixPlugin(), "--sessions", count: SessionConformance.checks.count)
    }

    @Test func `is found by the commands that measure, like a built-in transport, also beside one`() throws {
        let unix = try UnixPlugin()
        let host = try unix.host()
        for more in ["", ",tcp:interface=lo,mdns=off"] {
            try user.run("ping Puma -c 3 -i 10ms \(unix.options)\(more)")
        }
        try host.finish(after: SIGINT)
    }

    @Test func `carries a whole game of Four in a Row, which does not know it`() throws {
        let unix = try UnixPlugin()
        func player(_ line: String) throws -> Child {
            let words = "bot --games 1 --pause 0ms --identity ephemeral \(unix.options) \(line)"
            return try Child("fourinarow", words.split(separator: " ").map(String.init))
        }
        let robot = try player("--name Robot --level 2 --seed 1")
        let ghost = try player("--name Ghost --level 3 --seed 2 --at Robot")
        #expect(try ghost.end() == (0, []))
        #expect(try robot.end() == (0, []))
        // How the game ended, and the board. One program may also have reported that the other left.
        let ends = [robot, ghost].map { Array($0.lines.drop { !$0.hasPrefix("game") }.prefix(7)) }
        #expect(ends[0].count == 7 && ends[0] == ends[1], "\(robot.lines)\n\(ghost.lines)")
    }

    @Test func `is not loaded by a program with a Nigh or a Swift runtime of its own`() throws {
        let unix = try UnixPlugin()
        let products = try UnixPlugin.ruleBreakers()
        #expect(
            try Child.run("\(products)/KeepsNigh", [unix.path]).first
                == "loading a plugin: this program does not export its Nigh, so \(unix.path) cannot use it; "
                + "link the program to Nigh's product NighShared")
        // This program has the Swift runtime linked into it.
        let program = "\(unix.meetingPlace.path)/KeepsSwift"
        try Child.run(
            "/usr/bin/env",
            [
                "swiftc", "-static-stdlib", "-lz", "@\(products)/KeepsNigh.product/Objects.LinkFileList",
                "-Xlinker", "--defsym=main=KeepsNigh_main", "-o", program,
            ])
        #expect(
            try Child.run(program, [unix.path]).first
                == "loading a plugin: this program contains Swift's library, and would crash with the one "
                + "that \(unix.path) uses; build the program without -static-stdlib")
    }

    @Test func `is refused if it contains its own copy of Nigh`() throws {
        let products = try UnixPlugin.ruleBreakers()
        try user.run(
            "transports --plugin \(products)/libOwnNigh.so", status: 2,
            says: "it contains its own copy of Nigh")
    }
}

/// Tests plugins that break the transport contract on purpose, one rule at a time, in a program that checks the
/// contract.
@Suite("A plugin that breaks its contract", .callsPrograms) struct BrokenRuleTests {
    /// The rules that a ping gives an opportunity to break. TransportChecksTests breaks the others.
    static let provoked: [ContractRule] = [
        .eventsOnTheLoop, .toldInItsOwnName, .addressesCarryTheScheme, .errorsCarryTheScheme, .dialEndsOnce,
        .dialIsKnown, .routeOfTheService, .routeFoundOnce, .routeFoundFirst, .qualityInRange, .pipeOpenedOnce,
        .pipeClosedIsLast, .pipeEndsOnce, .nothingAfterTheEnd, .noEmptySlices, .writeTakesAll,
        .pipeDrainsOnce, .writableWhenTold, .countsWhatItTells, .countsWhatItTakes,
    ]

    private let user = NighUser()

    private func ping(_ rule: ContractRule?, _ options: String = "--check-transports", status: Int32? = nil)
        throws
        -> NighCall
    {
        let honest = try UnixPlugin()
        let host = try honest.host()
        let breaker = try UnixPlugin.ruleBreakers() + "/libRuleBreaker.so"
        let breaks = rule.map { ",breaks=\($0.rawValue)" } ?? ""
        let call = try user.run(
            """
            ping Puma -c 3 -i 10ms --identity ephemeral --plugin \(breaker) -t \(honest.spec)\(breaks) \(options)
            """, status: status)
        try host.finish(after: SIGINT)
        return call
    }

    @Test(arguments: provoked) func `is cut off, and the rule is named`(_ rule: ContractRule) throws {
        let call = try ping(rule)
        #expect(call.status != 0)
        let words = call.errors.filter { $0.contains("the transport broke the rule \"") }
        #expect(!words.isEmpty && words.allSatisfy { $0.contains("\"\(rule.rawValue)\"") }, "\(call.errors)")
        #expect(words.contains { $0.contains("bug in the transport \"unix\", not in the network") })
    }

    @Test(
        arguments: [
            // Impossible capabilities are refused at the start.
            (ContractRule.capabilitiesPossible, "--check-transports", 3),
            (.schemeWellFormed, "--check-transports", 3),
            // After the session's end, everything has succeeded.
            (.quietAfterShutdown, "--check-transports", 0),
            // A debug build checks by default.
            (.noEmptySlices, "", nil),
        ] as [(ContractRule, String, Int32?)])
    func `is named whenever it breaks a rule`(_ rule: ContractRule, _ options: String, _ status: Int32?)
        throws
    {
        let call = try ping(rule, options, status: status)
        #expect(call.error.contains("broke the rule \"\(rule.rawValue)\""), "\(call.errors)")
    }

    @Test func `causes no report if it keeps every rule`() throws {
        #expect(try ping(nil, status: 0).errors.isEmpty)
    }
}
