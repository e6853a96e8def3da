import NighCore

extension TransportConformance {
    static let diallingChecks = [
        ConformanceCheck(
            "listen-and-dial",
            "advertise reports a listening address; a dial to it opens a pipe at both ends, reported once"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for address in server.listening {
                try testbed.expect(address.scheme == server.transport.scheme, "\(address) has another scheme")
            }
            let (dialled, accepted) = try testbed.connect(client, server)
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 1000)
            try testbed.wait("the accepted end receives") { accepted.received == 1000 }
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 1000)
            try testbed.wait("the dialled end receives") { dialled.received == 1000 }
            try testbed.expect(server.acceptedPipes.count == 1, "one dial came in as several pipes")
            try testbed.expect(client.acceptedPipes.isEmpty, "a dialled pipe was also reported as accepted")
        },
        ConformanceCheck(
            "dial-refused", "a dial to an address where nobody listens fails, and not by a timeout"
        ) { testbed in
            // On a cable, nobody can refuse a dial before another transport is there.
            _ = try testbed.startTransport()
            let client = try testbed.startTransport()
            let dial = try client.dial(testbed.rig.refusedAddress)
            try testbed.wait("dialFailed") { client.failure(dial) != nil }
            guard let cause = client.failure(dial)?.error.cause else { return }
            try testbed.expect(cause != .timedOut && cause != .cancelled, "the cause is \"\(cause)\"")
        },
        ConformanceCheck(
            "dial-elsewhere", "a dial to an address of another scheme fails with an event, like any dial",
            needs: ConformanceNeeds(ends: 1)
        ) { testbed in
            let client = try testbed.startTransport()
            let dial = try client.dial(TransportAddress(scheme: "elsewhere", value: "x"))
            try testbed.wait("dialFailed") { client.failure(dial) != nil }
        },
        ConformanceCheck(
            "dial-timeout", "a dial that nobody answers fails with .timedOut, at its timeout and not before",
            needs: ConformanceNeeds(ends: 1, silentAddress: true)
        ) { testbed in
            guard let address = testbed.rig.silentAddress else { return }
            let client = try testbed.startTransport()
            let dial = try client.dial(address, timeout: .milliseconds(100))
            let other = try client.dial(address, timeout: .milliseconds(200))
            try testbed.wait("both dials time out") {
                client.failure(dial) != nil && client.failure(other) != nil
            }
            for (dial, least) in [(dial, 99), (other, 199)] as [(DialID, Int64)] {
                guard let failure = client.failure(dial) else { continue }
                try testbed.expect(
                    failure.error.cause == .timedOut, "the cause is \"\(failure.error.cause)\"")
                try testbed.expect(failure.after >= .milliseconds(least), "it failed after \(failure.after)")
            }
        },
        ConformanceCheck(
            "dial-cancelled", "a cancelled dial reports nothing more; a pipe that it opened is closed"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            for address in [try Testbed.address(in: server.listening), testbed.rig.refusedAddress] {
                try client.dialAndCancel(address)
            }
            if let silent = testbed.rig.silentAddress {
                try client.dialAndCancel(silent)
                let hanging = try client.dial(silent, timeout: .milliseconds(60))
                try client.cancel(hanging)
                try client.cancel(hanging)
            }
            try client.cancel(DialID(number: 999_999))
            try testbed.waitQuietTime()
            try testbed.wait("pipes of a cancelled dial end") { server.acceptedPipes.allSatisfy(\.isOver) }
            let (dialled, accepted) = try testbed.connect(client, server)
            try dialled.send(tag: 3, upTo: 10, pieceLimit: 10)
            try testbed.wait("a dial after a cancelled one works") { accepted.received == 10 }
        },
        ConformanceCheck(
            "many-pipes",
            "at the limit of pipes, each pipe carries its own bytes, and closing some leaves the others open"
        ) { testbed in
            let server = try testbed.startListener()
            let client = try testbed.startTransport()
            let address = try Testbed.address(in: server.listening)
            let size = 64 * 1024
            let count = testbed.rig.pipesAtOnce
            let closing = count / 2
            var dials: [DialID] = []
            for _ in 0..<count { dials.append(try client.dial(address)) }
            try testbed.wait("\(count) dials open \(count) pipes at both ends") {
                server.acceptedPipes.count == count
                    && dials.allSatisfy { client.dialledPipe($0) != nil }
            }
            let dialled = dials.compactMap(client.dialledPipe)
            for (index, probe) in dialled.enumerated() {
                try probe.send(tag: UInt8(index + 1), upTo: size, pieceLimit: 5000)
            }
            try testbed.wait("all bytes arrive") { server.acceptedPipes.allSatisfy { $0.received == size } }
            let tags = Set(server.acceptedPipes.compactMap(\.receivedTag))
            try testbed.expect(tags.count == count, "two pipes carried the same stream")
            for probe in dialled.prefix(closing) { try probe.close(.now) }
            let open = server.acceptedPipes.filter { $0.receivedTag! > closing }
            for probe in open { try probe.send(tag: probe.receivedTag!, upTo: size, pieceLimit: 5000) }
            try testbed.wait("the open ones continue") {
                dialled.dropFirst(closing).allSatisfy { $0.received == size }
            }
            for (index, probe) in dialled.enumerated().dropFirst(closing) {
                try testbed.expect(probe.receivedTag == UInt8(index + 1), "an answer came on another pipe")
            }
            try testbed.wait("the closed ones end") {
                server.acceptedPipes.filter(\.isOver).count == closing
            }
        },
    ]
}
