import Glibc

/// Records what passes a host's cable with tshark, on the bridge's end of it, and reads the record with tshark.
///
/// The interface belongs to the lab's own network namespace, which contains nothing else of this machine.
final class Capture {
    /// A TCP connection with the bytes that its two ends read.
    struct Connection {
        let number: Int
        /// All pieces of data, in the order in which they were sent.
        fileprivate(set) var words: [(isAnswer: Bool, bytes: [UInt8])] = []

        /// The bytes sent by the side that opened the connection, or by the other side.
        func said(inAnswer isAnswer: Bool) -> [UInt8] {
            words.filter { $0.isAnswer == isAnswer }.flatMap(\.bytes)
        }
    }

    /// What tshark recognises as TLS in a connection.
    struct Verdict {
        /// `TLSv1.3`, if it is only that.
        var protocols: Set<String> = []
        /// The number of bytes of each side's stream that belong to a TLS record.
        var byteCounts = (asking: 0, answering: 0)
        /// What it can tell about the records, such as `Client Hello` or `Application Data`.
        var contents: Set<String> = []
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

    /// Returns every connection that carried data.
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

    /// Returns what was announced by multicast DNS.
    func announcements() throws(Failure) -> [UInt8] {
        try read(path, ["-Y", "udp"] + Self.fields(["udp.payload"])).flatMap { Self.bytes(of: $0[...]) ?? [] }
    }

    /// Decodes hexadecimal digits; nil if there is anything else.
    private static func bytes(of digits: Substring) -> [UInt8]? {
        let values = digits.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard values.count == digits.utf8.count, values.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }

    /// Returns what tshark's TLS dissector recognises in a connection behind the first `skipped` bytes of each side.
    ///
    /// The dissector does not know the preface, and finds no record behind unknown bytes. So it gets the connection
    /// again, as packets of a connection without the preface.
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
