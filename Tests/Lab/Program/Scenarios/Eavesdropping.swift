import NighLoop

/// An eavesdropper records everything on the cable between two hosts, and reads it.
enum Eavesdropping {
    static let all = [
        Scenario("overheard", "a capture of an encrypted conversation shows two prefaces and TLS 1.3") {
            try overhear($0, isEncrypted: true)
        },
        Scenario("overheard-unencrypted", "the same without encryption shows every word: it can be read") {
            try overhear($0, isEncrypted: false)
        },
    ]

    /// Bytes that an eavesdropper may search for.
    private struct Secret {
        let words: String
        let bytes: [UInt8]
        /// Whether multicast DNS announces it to everybody.
        var isAnnounced = false
        /// Whether peers send it to each other over their connection.
        var isSaid = true

        /// The whole and each half, because even a part must not be visible.
        var searches: [(words: String, bytes: ArraySlice<UInt8>)] {
            let middle = bytes.count / 2
            return [
                (words, bytes[...]), ("the first half of \(words)", bytes[..<middle]),
                ("the second half of \(words)", bytes[middle...]),
            ]
        }
    }

    private static let service = "overheard-lab"
    private static let info = "place=under the old walnut tree"
    private static let preface: [UInt8] = [0x4E, 0x49, 0x47, 0x48, 1, 2, 0, 0]
    /// The length of the messages that `Pair.exchangeMessages` sends.
    private static let messageByteCount = 64
    /// The first bytes of an Ed25519 key in every certificate (RFC 8410).
    private static let keyBeginning: [UInt8] = [
        0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21,
    ]
    /// The bytes of the name in each of our certificates.
    private static let certificateName: [UInt8] =
        [0x06, 0x03, 0x55, 0x04, 0x03] + [0x0C, 0x04] + Array("nigh".utf8)

    private static func overhear(_ lab: Lab, isEncrypted: Bool) throws {
        let hosts = try ["puma", "lynx"].map { try lab.host($0) }
        let capture = try Capture(of: hosts[0], in: lab)
        var options = PeerProcess.Options.embedded.adding("--service", service, "--info", info)
        if !isEncrypted { options = options.adding("--unencrypted") }
        let pair = Pair(
            try hosts[0].peer("Puma who sleeps in the afternoon", options),
            try hosts[1].peer("Lynx who never comes down again", options))
        try pair.find()
        // Twice, because the second handshake is another one: it uses a ticket of the first.
        for _ in 0..<2 {
            try pair.invite()
            try pair.exchangeMessages()
            try pair.part()
        }
        for peer in pair.peers { peer.quit() }
        try capture.end(withACallTo: hosts[1])
        let connections = try capture.connections()
        let whole = connections.filter { $0.streams[1].count > preface.count }
        try lab.check("two connections or more were captured to their end", whole.count >= 2)
        let secrets = commonSecrets + (try pair.directions.flatMap { try Self.secrets(of: $0, for: $1) })
        // Public data must be found. This shows that the search works and the documentation is right.
        let announcements = try capture.announcements()
        for secret in secrets where secret.isAnnounced {
            try lab.check("multicast DNS tells \(secret.words)", holds(announcements, secret.bytes[...]))
        }
        guard isEncrypted else { return try checkPlaintext(connections, secrets, on: hosts[0]) }
        for connection in connections {
            lab.step("connection \(connection.number)")
            try checkSilence(lab, connection, secrets)
        }
        for connection in whole { try checkEncryption(lab, connection) }
    }

    private static var commonSecrets: [Secret] {
        [
            Secret(words: "the service", bytes: Array(service.utf8), isAnnounced: true),
            Secret(words: "the discovery info", bytes: Array(info.utf8), isAnnounced: true, isSaid: false),
            Secret(words: "a certificate's key", bytes: keyBeginning, isSaid: false),
            Secret(words: "a certificate's name", bytes: certificateName, isSaid: false),
        ]
    }

    private static func secrets(of peer: PeerProcess, for other: PeerProcess) throws -> [Secret] {
        guard let id = PeerID(peer.id), let run = UInt64(peer.run, radix: 16) else {
            throw Failure("\(peer.label) has no PeerID or no run")
        }
        let name = peer.name
        return [
            Secret(words: "\(name)'s name", bytes: Array(name.utf8), isAnnounced: true),
            Secret(words: "\(name)'s PeerID", bytes: id.bytes),
            Secret(
                words: "\(name)'s PeerID in letters", bytes: Array(peer.id.utf8), isAnnounced: true,
                isSaid: false),
        ]
            + peer.sent(to: other).map { number in
                let message = NumberedMessage(run: run, number: number).bytes(size: messageByteCount)
                return Secret(words: "message \(number) of \(name)", bytes: message)
            }
    }

    /// Also checks connections that were given up because another was faster. In these, one side may have sent nothing.
    private static func checkSilence(
        _ lab: Lab, _ connection: Capture.Connection, _ secrets: [Secret]
    ) throws {
        let streams = connection.streams
        try lab.check(
            "both begin with a preface, of \(streams.map(\.count)) bytes",
            streams.allSatisfy { $0.isEmpty || $0.starts(with: preface) })
        for search in secrets.flatMap(\.searches) where streams.contains(where: { holds($0, search.bytes) }) {
            throw Failure("\(search.words) is in the clear")
        }
        lab.step("none of \(secrets.count) secrets is in the clear")
    }

    /// Checks that behind the preface a connection is TLS 1.3 (RFC 8446), of which all but the greetings is encrypted.
    private static func checkEncryption(_ lab: Lab, _ connection: Capture.Connection) throws {
        lab.step("records of connection \(connection.number)")
        let (handshake, changeOfCipher, encrypted) = (22 as UInt8, 20 as UInt8, 23 as UInt8)
        for (greeting, stream) in zip([1, 2] as [UInt8], connection.streams) {
            let records = try records(of: stream.dropFirst(preface.count))
            let types = records.map { $0[$0.startIndex] }
            let first = records[0].dropFirst(5)
            try lab.check(
                "a greeting is first, and all \(types.count - 1) other records are encrypted",
                types[0] == handshake && first.first == greeting
                    && types.dropFirst().allSatisfy { [changeOfCipher, encrypted].contains($0) })
            // The extension with which a server says what it has chosen.
            let version: [UInt8] = [0x00, 0x2B, 0x00, 0x02, 0x03, 0x04]
            try lab.check("the server has chosen TLS 1.3", greeting == 1 || holds(Array(first), version[...]))
        }
    }

    /// Splits bytes into TLS records, of which nothing may be left.
    private static func records(of bytes: ArraySlice<UInt8>) throws -> [ArraySlice<UInt8>] {
        var (records, rest): ([ArraySlice<UInt8>], ArraySlice<UInt8>) = ([], bytes)
        while !rest.isEmpty {
            let head = Array(rest.prefix(5))
            let length = head.count == 5 && head[1] == 3 ? Int(head[3]) << 8 + Int(head[4]) : 0
            guard length > 0, rest.count >= 5 + length else { throw Failure("no TLS record: \(head)") }
            records.append(rest.prefix(5 + length))
            rest = rest.dropFirst(5 + length)
        }
        return records
    }

    private static func checkPlaintext(
        _ connections: [Capture.Connection], _ secrets: [Secret], on host: Host
    ) throws {
        let streams = connections.flatMap(\.streams)
        for search in secrets.filter(\.isSaid).flatMap(\.searches)
        where !streams.contains(where: { holds($0, search.bytes) }) {
            throw Failure("\(search.words) is not found where nothing is encrypted")
        }
        host.lab.step("all that is said is in the clear")
        // The words that are searched for in certificates are found in one.
        let digits = try host.run([
            "sh", "-c",
            "openssl req -x509 -newkey ed25519 -nodes -subj /CN=nigh -utf8 -keyout /dev/null -outform DER 2>/dev/null"
                + " | od -An -v -tx1",
        ])
        let certificate = digits.flatMap { $0.split(separator: " ") }.compactMap { UInt8($0, radix: 16) }
        for (words, bytes) in [("key", keyBeginning), ("name", certificateName)] {
            try host.lab.check("a certificate's \(words) is found in one", holds(certificate, bytes[...]))
        }
    }

    private static func holds(_ bytes: [UInt8], _ part: ArraySlice<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        return bytes.indices.contains { bytes[$0] == first && bytes[$0...].starts(with: part) }
    }
}
