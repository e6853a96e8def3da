import NighCore

extension TransportConformance {
    static let diallingChecks = [
        ConformanceCheck(
            "listen-and-dial",
            "advertise tells where it listens; a dial there opens a pipe at both ends, told once"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for address in server.listening {
                try bench.expect(address.scheme == server.transport.scheme, "\(address) has another scheme")
            }
            let (dialled, accepted) = try bench.connect(client, server)
            try dialled.send(tag: 1, upTo: 1000, pieceLimit: 1000)
            try bench.wait("the accepted end receives") { accepted.received == 1000 }
            try accepted.send(tag: 2, upTo: 1000, pieceLimit: 1000)
            try bench.wait("the dialled end receives") { dialled.received == 1000 }
            try bench.expect(server.acceptedPipes.count == 1, "one dial came in as several pipes")
            try bench.expect(client.acceptedPipes.isEmpty, "a dialled pipe was also told as accepted")
        },
        ConformanceCheck(
            "dial-refused", "a dial to where nobody listens fails, with a cause that is no timeout"
        ) { bench in
            // On a cable, nobody can refuse a dial before another transport is there.
            _ = try bench.station()
            let client = try bench.station()
            let dial = try client.dial(bench.rig.refusedAddress)
            try bench.wait("dialFailed") { client.failure(dial) != nil }
            guard let cause = client.failure(dial)?.error.cause else { return }
            try bench.expect(cause != .timedOut && cause != .cancelled, "the cause is \"\(cause)\"")
        },
        ConformanceCheck(
            "dial-elsewhere", "a dial to an address of another scheme fails, as any dial does: by an event",
            needs: ConformanceNeeds(ends: 1)
        ) { bench in
            let client = try bench.station()
            let dial = try client.dial(TransportAddress(scheme: "elsewhere", value: "x"))
            try bench.wait("dialFailed") { client.failure(dial) != nil }
        },
        ConformanceCheck(
            "dial-timeout", "a dial that nobody answers fails with .timedOut, at its timeout and not before",
            needs: ConformanceNeeds(ends: 1, silentAddress: true)
        ) { bench in
            guard let address = bench.rig.silentAddress else { return }
            let client = try bench.station()
            let dial = try client.dial(address, timeout: .milliseconds(100))
            let other = try client.dial(address, timeout: .milliseconds(200))
            try bench.wait("both dials time out") {
                client.failure(dial) != nil && client.failure(other) != nil
            }
            for (dial, least) in [(dial, 99), (other, 199)] as [(DialID, Int64)] {
                guard let failure = client.failure(dial) else { continue }
                try bench.expect(failure.error.cause == .timedOut, "the cause is \"\(failure.error.cause)\"")
                try bench.expect(failure.after >= .milliseconds(least), "it failed after \(failure.after)")
            }
        },
        ConformanceCheck(
            "dial-cancelled", "a dial taken back is heard of no more; a pipe it opened is closed"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            for address in [server.listening[0], bench.rig.refusedAddress] {
                try client.dialAndCancel(address)
            }
            if let silent = bench.rig.silentAddress {
                try client.dialAndCancel(silent)
                let hanging = try client.dial(silent, timeout: .milliseconds(60))
                try client.cancel(hanging)
                try client.cancel(hanging)
            }
            try client.cancel(DialID(number: 999_999))
            try bench.settle()
            try bench.wait("pipes of a cancelled dial end") { server.acceptedPipes.allSatisfy(\.isOver) }
            let (dialled, accepted) = try bench.connect(client, server)
            try dialled.send(tag: 3, upTo: 10, pieceLimit: 10)
            try bench.wait("a dial after a cancelled one works") { accepted.received == 10 }
        },
        ConformanceCheck(
            "many-pipes",
            "as many pipes as can be at once carry each its own bytes, and closing some leaves the others"
        ) { bench in
            let server = try bench.listener()
            let client = try bench.station()
            let address = server.listening[0]
            let size = 64 * 1024
            let count = bench.rig.pipesAtOnce
            let closing = count / 2
            var dials: [DialID] = []
            for _ in 0..<count { dials.append(try client.dial(address)) }
            try bench.wait("\(count) dials open \(count) pipes at both ends") {
                server.acceptedPipes.count == count
                    && dials.allSatisfy { client.dialledPipe($0) != nil }
            }
            let dialled = dials.compactMap(client.dialledPipe)
            for (index, probe) in dialled.enumerated() {
                try probe.send(tag: UInt8(index + 1), upTo: size, pieceLimit: 5000)
            }
            try bench.wait("all arrives") { server.acceptedPipes.allSatisfy { $0.received == size } }
            let tags = Set(server.acceptedPipes.compactMap(\.receivedTag))
            try bench.expect(tags.count == count, "two pipes carried the same stream")
            for probe in dialled.prefix(closing) { try probe.close(.now) }
            let open = server.acceptedPipes.filter { $0.receivedTag! > closing }
            for probe in open { try probe.send(tag: probe.receivedTag!, upTo: size, pieceLimit: 5000) }
            try bench.wait("the open ones go on") {
                dialled.dropFirst(closing).allSatisfy { $0.received == size }
            }
            for (index, probe) in dialled.enumerated().dropFirst(closing) {
                try bench.expect(probe.receivedTag == UInt8(index + 1), "an answer came on another pipe")
            }
            try bench.wait("the closed ones end") {
                server.acceptedPipes.filter(\.isOver).count == closing
            }
        },
    ]
}
