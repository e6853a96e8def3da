import NighCore
import NighSystem
import NighWeb

/// Texts that people and browsers write.
enum Texts {
    /// The trust store's file, as people and disks change it. It stays the same when it is written and read again, also
    /// after a peer was recorded under the name that it gave.
    static func trust(_ input: inout Input) throws {
        let change = input.number(below: 5)
        let name = DisplayName(fitting: String(decoding: input.content(), as: UTF8.self))
        var book: TrustBook
        do throws(TrustText.Fault) {
            book = try TrustText.book(of: String(decoding: input.rest(), as: UTF8.self))
        } catch {
            return try expect(!error.reason.isEmpty && !error.advice.isEmpty, "refused without a reason")
        }
        try check(book)
        guard let day = CalendarDay("2026-11-21"), let peer = book.entries.keys.min() else { return }
        let changes: [TrustChange] = [
            .remember(name, on: day), .pair(name, on: day), .forget, .unpair, .remember(name, on: day),
        ]
        book.apply(changes[change], to: change == 4 ? Decoders.identities[0].peerID : peer)
        try check(book)
    }

    private static func check(_ book: TrustBook) throws {
        let written = TrustText.text(of: book)
        do {
            let again = try TrustText.book(of: written)
            // Compared byte by byte: different bytes are a different name, even if they look the same. Empty lines
            // remain at the end after the last peer was forgotten.
            let texts = [written, TrustText.text(of: again)].map { text in
                text.utf8.reversed().drop { $0 == UInt8(ascii: "\n") }
            }
            try expect(texts[0].elementsEqual(texts[1]), "\(written.debugDescription) is not written as read")
            try expect(content(of: again) == content(of: book), "\(written.debugDescription) differs")
        } catch let fault as TrustText.Fault {
            throw Finding(description: "\(written.debugDescription) is not a trust store: \(fault.reason)")
        }
    }

    private static func content(of book: TrustBook) -> [PeerID: [[UInt8]]] {
        book.entries.mapValues { entry in
            ["\(entry.name)", "\(entry.isPaired)", "\(entry.since)", "\(entry.lastSeen)", entry.comment]
                .map { Array($0.utf8) }
        }
    }

    // MARK: Requests of browsers

    private struct Outcome: Equatable {
        var requests: [HTTPRequest] = []
        var fault: HTTPFault?

        init(reading slices: [ByteSlice]) {
            var reader = HTTPRequestReader()
            do throws(HTTPFault) {
                for slice in slices {
                    try slice.withUnsafeBytes { bytes throws(HTTPFault) in try reader.append(bytes) }
                    while let request = try reader.next() { requests.append(request) }
                }
            } catch {
                fault = error
            }
        }
    }

    /// Requests are the same however they are cut. A reader that looks for lines alone finds the same requests.
    static func http(_ input: inout Input) throws {
        var cut = Input(input.bytes(2))
        // The reader bounds the bytes that come at once, so a longer input would be refused in one piece only.
        let bytes = Array(input.rest().prefix(2 * HTTPRequestReader.longestRequest))
        let whole = Outcome(reading: [ByteSlice(bytes)])
        try expect(
            whole == Outcome(reading: cut.slices(of: bytes)), "\(whole) in one piece differs in several")
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }[...]
        for request in whole.requests {
            let first = lines.popFirst() ?? ""
            let isFirst = first.hasPrefix("GET \(request.path)") && first.hasSuffix(" HTTP/1.1")
            try expect(isFirst && request.path.hasPrefix("/"), "the request line is read as \(request.path)")
            try expect(request.headers["transfer-encoding"] == nil, "a body is accepted")
            var hosts = 0
            while let line = lines.popFirst(), !line.isEmpty {
                let name = line.prefix { $0 != ":" }.lowercased()
                try expect(line.first != " " && line.first != "\t", "a folded line is accepted")
                guard let value = request.headers[name] else {
                    throw Finding(description: "the header \(name) is lost")
                }
                guard ["host", "origin"].contains(name) else { continue }
                if name == "host" { hosts += 1 }
                let said = line.drop { $0 != ":" }.dropFirst().filter { $0 != " " && $0 != "\t" }
                let isSame = said == value.filter { $0 != " " && $0 != "\t" }
                try expect(isSame, "\(name) is read as \(value)")
            }
            try expect(hosts == 1, "a request with \(hosts) hosts is accepted")
        }
    }

    // MARK: WebSockets

    /// The messages, pings and end that a reader has found in the bytes.
    fileprivate struct Found: Equatable {
        var bytes: [UInt8] = []
        var ends: [Int] = []
        var pings: [[UInt8]] = []
        var hasClosed = false
        var code: WebSocketCode?
    }

    /// The frames that a browser sends, cut anywhere, beside the simplest reader of them.
    static func webSocket(_ input: inout Input) throws {
        var cut = Input(input.bytes(2))
        let wire = input.rest()
        var reader = WebSocketReader()
        var found = Found()
        do throws(WebSocketCode) {
            for slice in cut.slices(of: wire) where !found.hasClosed {
                // The reader changes what it is given.
                reader.append(slice.copy())
                while !found.hasClosed, let event = try reader.next() { found.add(event) }
            }
        } catch {
            found.code = error
        }
        let expected = plain(wire)
        try expect(found == expected, "\(found), expected \(expected)")
    }

    /// Reads `wire` frame by frame, as section 5 of RFC 6455 says.
    private static func plain(_ wire: [UInt8]) -> Found {
        var found = Found()
        var rest = wire[...]
        var length: UInt64?
        func failed(_ code: WebSocketCode) -> Found {
            found.code = code
            return found
        }
        while rest.count >= 2 {
            let bytes = Array(rest.prefix(14))
            let (operation, isLast) = (bytes[0] & 15, bytes[0] >> 7 == 1)
            guard bytes[0] >> 4 & 7 == 0, bytes[1] >> 7 == 1 else { return failed(.protocolError) }
            let short = bytes[1] & 0x7F
            let start = 2 + (short == 126 ? 2 : short == 127 ? 8 : 0)
            guard bytes.count >= start + 4 else { return found }
            let count = short < 126 ? UInt64(short) : bytes[2..<start].reduce(0) { $0 << 8 | UInt64($1) }
            let least: UInt64 = short == 126 ? 126 : short == 127 ? 65_536 : 0
            let isControl = operation >= 8
            guard [0, 1, 2, 8, 9, 10].contains(operation), count >= least, !isControl || isLast && count < 126
            else { return failed(.protocolError) }
            if operation == 1 { return failed(.unsupportedData) }
            if !isControl {
                guard (operation == 0) == (length != nil) else { return failed(.protocolError) }
                guard count <= 65_536, (length ?? 0) + count <= 65_536 else { return failed(.tooBig) }
                length = (length ?? 0) + count
            }
            let masked = rest.dropFirst(start + 4).prefix(Int(count))
            let payload = masked.enumerated().map { $1 ^ bytes[start + $0 % 4] }
            if !isControl { found.bytes += payload }
            guard payload.count == Int(count) else { return found }
            rest = rest.dropFirst(start + 4 + Int(count))
            switch operation {
            case 8:
                found.hasClosed = true
                return found
            case 9: found.pings.append(payload)
            case 0, 2:
                guard isLast else { continue }
                found.ends.append(found.bytes.count)
                length = nil
            default: break
            }
        }
        return found
    }
}

extension Texts.Found {
    fileprivate mutating func add(_ event: WebSocketReader.Event) {
        switch event {
        case .bytes(let bytes, let endsMessage):
            self.bytes += bytes.bytes
            if endsMessage { ends.append(self.bytes.count) }
        case .ping(let bytes): pings.append(bytes)
        case .close: hasClosed = true
        }
    }
}
