import Glibc

/// Records what passes a host's cable with tshark, on the bridge's end of it, and reads the record with tshark.
///
/// The interface belongs to the lab's own network namespace, which contains nothing else of this machine.
final class Capture {
    /// A TCP connection with the bytes that its two ends read.
    struct Connection {
        let number: Int
        /// The bytes sent by the side that opened the connection, and by the other side.
        fileprivate(set) var streams: [[UInt8]] = [[], []]
    }

    /// A port where nobody listens. A connection to it marks the end of the capture.
    private static let lastPort = "9"

    private let lab: Lab
    private let host: Host
    private let path: String
    private let program: Child
    /// The connections whose beginning was seen. `ended` has those whose end was seen.
    private var begun: Set<String> = []
    private var ended: Set<String> = []
    private var hasLast = false

    /// Starts to record what passes the first interface of `host`. Returns once it records.
    init(of host: Host, in lab: Lab) throws {
        self.lab = lab
        self.host = host
        path = "\(Lab.folder)/\(host.name).pcapng"
        program = try lab.supervisor.start(
            "tshark",
            [
                "tshark", "-n", "-i", host.port("eth0"), "-f", "tcp or udp port 5353", "-w", path, "-P", "-l",
            ]
                + Self.fields([
                    "tcp.stream", "tcp.flags.syn", "tcp.flags.fin", "tcp.flags.reset", "tcp.dstport",
                ]), mayEnd: true)
        program.onLine = { [unowned self] stream, line in if stream == .output { noteSegment(line) } }
        // The file is created once the interface is open.
        try lab.wait(for: "the capture to begin", within: .seconds(20)) { access(path, F_OK) == 0 }
    }

    private static func fields(_ names: [String]) -> [String] {
        ["-T", "fields"] + names.flatMap { ["-e", $0] }
    }

    private func noteSegment(_ line: String) {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 5, !fields[0].isEmpty else { return }
        let isFirst = fields[1] == "1"
        if isFirst, fields[4] == Self.lastPort { return hasLast = true }
        if isFirst { begun.insert(fields[0]) }
        if fields[2] == "1" || fields[3] == "1" { ended.insert(fields[0]) }
    }

    /// Ends the capture once every connection that has begun by now has ended, so that nothing of them is missing. On a
    /// busy machine, tshark shows packets late. So the host connects to `other` as the last thing that must show up.
    func end(withACallTo other: Host) throws {
        try host.run(["bash", "-c", "(: > /dev/tcp/\(other.address())/\(Self.lastPort)) 2>/dev/null || true"])
        try lab.wait(for: "every connection to be captured to its end") {
            hasLast && !begun.isEmpty && begun.isSubset(of: ended)
        }
        program.signal(SIGINT)
        try lab.wait(for: "the capture to end") { program.isOver }
    }

    // MARK: Reading

    private func read(_ file: String, _ arguments: [String]) throws -> [String] {
        try lab.supervisor.run(["tshark", "-n", "-r", file] + arguments)
    }

    /// Returns every connection that carried data.
    func connections() throws -> [Connection] {
        let lines = try read(
            path, ["-q"] + begun.sorted().flatMap { ["-z", "follow,tcp,raw,\($0)"] })
        var connections: [Connection] = []
        for line in lines {
            if let number = line.split(separator: " ").last.flatMap({ Int($0) }), line.hasPrefix("Filter:") {
                connections.append(Connection(number: number))
            }
            let digits = line.drop { $0 == "\t" }
            guard !connections.isEmpty, let bytes = Self.bytes(of: digits), !bytes.isEmpty else { continue }
            connections[connections.count - 1].streams[line.hasPrefix("\t") ? 1 : 0] += bytes
        }
        return connections.filter { $0.streams != [[], []] }
    }

    /// Returns what was announced by multicast DNS.
    func announcements() throws -> [UInt8] {
        try read(path, ["-Y", "udp"] + Self.fields(["udp.payload"])).flatMap { Self.bytes(of: $0[...]) ?? [] }
    }

    /// Decodes hexadecimal digits; nil if there is anything else.
    private static func bytes(of digits: Substring) -> [UInt8]? {
        let values = digits.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count == digits.utf8.count, values.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }
}
