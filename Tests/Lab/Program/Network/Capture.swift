import Glibc

/// What goes over a host's wire, written down by tshark on the bridge's side of it, and what tshark makes of that.
///
/// The interface is one of the lab's own network namespace, which nothing of this machine is in.
final class Capture {
    /// A TCP connection as its two ends read it.
    struct Connection {
        let number: Int
        /// All that was said, in the order in which it was.
        fileprivate(set) var words: [(isAnswer: Bool, bytes: [UInt8])] = []

        /// What the side that opened it wrote, or what the other did.
        func said(inAnswer isAnswer: Bool) -> [UInt8] {
            words.filter { $0.isAnswer == isAnswer }.flatMap(\.bytes)
        }
    }

    /// What tshark sees of TLS in a connection.
    struct Verdict {
        /// `TLSv1.3`, where it is that alone.
        var protocols: Set<String> = []
        /// How many bytes of each side's stream belong to a record.
        var byteCounts = (asking: 0, answering: 0)
        /// What it can tell about the records, such as `Client Hello` or `Application Data`.
        var contents: Set<String> = []
    }

    /// Where nobody listens: who calls there ends the capture.
    private static let lastPort = "9"

    private let lab: Lab
    private let host: Host
    private let path: String
    private let program: Child
    /// Connections that were seen to begin, and those seen to end.
    private var begun: Set<String> = []
    private var ended: Set<String> = []
    private var hasLast = false

    /// Begins to write down what passes `host`'s first interface; returns when it does.
    init(of host: Host, in lab: Lab) throws(Failure) {
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
        // The file is opened once the interface is.
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

    /// Ends it once every connection that has begun by now has ended, so that nothing of them is missing. What it shows comes
    /// late on a busy machine: a call of the host to `other` is the last that it has to show.
    func end(withACallTo other: Host) throws(Failure) {
        try host.run(["bash", "-c", "(: > /dev/tcp/\(other.address())/\(Self.lastPort)) 2>/dev/null || true"])
        try lab.wait(for: "every connection to be captured to its end") {
            hasLast && !begun.isEmpty && begun.isSubset(of: ended)
        }
        program.signal(SIGINT)
        try lab.wait(for: "the capture to end") { program.isOver }
    }

    // MARK: Reading

    private func read(_ file: String, _ arguments: [String]) throws(Failure) -> [String] {
        try lab.supervisor.run(["tshark", "-n", "-r", file] + arguments)
    }

    /// Every connection over which something was said.
    func connections() throws(Failure) -> [Connection] {
        let lines = try read(
            path, ["-q"] + begun.sorted().flatMap { ["-z", "follow,tcp,raw,\($0)"] })
        var connections: [Connection] = []
        for line in lines {
            if let number = line.split(separator: " ").last.flatMap({ Int($0) }), line.hasPrefix("Filter:") {
                connections.append(Connection(number: number))
            }
            let digits = line.drop { $0 == "\t" }
            guard !connections.isEmpty, let bytes = Self.bytes(of: digits), !bytes.isEmpty else { continue }
            connections[connections.count - 1].words.append((line.hasPrefix("\t"), bytes))
        }
        return connections.filter { !$0.words.isEmpty }
    }

    /// What was announced by multicast DNS.
    func announcements() throws(Failure) -> [UInt8] {
        try read(path, ["-Y", "udp"] + Self.fields(["udp.payload"])).flatMap { Self.bytes(of: $0[...]) ?? [] }
    }

    /// What stands there in hexadecimal digits; nil where something else does.
    private static func bytes(of digits: Substring) -> [UInt8]? {
        let values = digits.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count == digits.utf8.count, values.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }

    /// What tshark's own reader of TLS makes of a connection behind the first `skipped` bytes of each side.
    ///
    /// It knows no preface, and looks for no record behind bytes it does not know. So it is shown the connection anew, as
    /// packets of a connection in which that was never said.
    func verdict(on connection: Connection, behind skipped: Int) throws(Failure) -> Verdict {
        var left = [skipped, skipped]
        var text = ""
        for word in connection.words {
            let side = word.isAnswer ? 1 : 0
            let bytes = word.bytes.dropFirst(left[side])
            left[side] -= word.bytes.count - bytes.count
            guard !bytes.isEmpty else { continue }
            text += word.isAnswer ? "O\n000000" : "I\n000000"
            for byte in bytes { text += (byte < 16 ? " 0" : " ") + String(byte, radix: 16) }
            text += "\n"
        }
        let (dump, file) = ("\(path).\(connection.number).text", "\(path).\(connection.number)")
        try Lab.write(text, to: dump)
        try lab.supervisor.run(["text2pcap", "-q", "-D", "-T", "4711,443", dump, file])
        let lines = try read(
            file,
            ["-2", "-d", "tcp.port==443,tls", "-Y", "tls"]
                + Self.fields(["tcp.srcport", "tls.record.length", "_ws.col.Protocol", "_ws.col.Info"]))
        var verdict = Verdict()
        for line in lines {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard fields.count == 4 else { throw Failure("tshark says what it should not: \(line)") }
            let count = fields[1].split(separator: ",").reduce(0) { $0 + 5 + (Int($1) ?? 0) }
            if fields[0] == "443" {
                verdict.byteCounts.answering += count
            } else {
                verdict.byteCounts.asking += count
            }
            verdict.protocols.insert(fields[2])
            for content in fields[3].split(separator: ",") {
                verdict.contents.insert(String(content.drop { $0 == " " }))
            }
        }
        return verdict
    }
}
