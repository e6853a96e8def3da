import NighCore

// Pipes whose other end never completes a handshake.

extension SessionConformance {
    static let strangerChecks = [
        ConformanceCheck(
            "silent-pipes",
            "silent pipes are accepted up to the limit, harm no other peer, and make room when they close",
            needs: ConformanceNeeds(ends: 7)
        ) { testbed in
            // On a wire that carries few pipes from one end to another, the host admits fewer.
            let size = 4
            let most = size * testbed.rig.pipesAtOnce
            let usual = SessionLimits().unauthenticatedPipes
            let (limit, excess) = most < 24 ? (2, 2) : (min(usual, most - 6), 6)
            let host = try testbed.startSession("Host") { $0.limits.unauthenticatedPipes = limit }
            let guest = try testbed.startSession("Guest")
            try testbed.connect(guest, host)
            let strangers = try (0..<size).map { _ in try testbed.startTransport(raw: true) }
            let dials = try (0..<limit + excess).map { number in
                let stranger = strangers[number % size]
                return (stranger: stranger, dial: try stranger.dial(Testbed.address(in: host.listening)))
            }
            try testbed.wait("the pipes beyond the limit are closed") {
                dials.count {
                    $0.stranger.dialledPipe($0.dial)?.isOver == true || $0.stranger.failure($0.dial) != nil
                } == excess
            }
            let refused = try testbed.statistics(of: host).pipesRefused
            try testbed.expect(refused == excess, "\(refused) pipes were refused, \(excess) were too many")
            try MessageTransfer(testbed, from: guest, to: host, lengths: lengths).finish()
            for (stranger, dial) in dials { try stranger.dialledPipe(dial)?.close(.now) }
            try testbed.wait("the host forgets them", at: host) { $0.inspection.strangers == 0 }
            try testbed.connect(testbed.startSession("Newcomer"), host)
        },
        ConformanceCheck(
            "slow-greeting", "a pipe on which no handshake completes is closed after the handshake timeout"
        ) { testbed in
            let host = try testbed.startSession("Host") { $0.timings.handshake = .milliseconds(300) }
            let stranger = try testbed.startTransport(raw: true)
            let dial = try stranger.dial(Testbed.address(in: host.listening))
            try testbed.wait("the pipe is closed") { stranger.dialledPipe(dial)?.isOver == true }
            try testbed.waitForLinks(0, at: host)
        },
        ConformanceCheck(
            "garbage", "invalid bytes close their pipe and nothing else"
        ) { testbed in
            let host = try testbed.startSession("Host")
            // On a wire with two ends there is no other session to harm, and the guest joins afterwards.
            let hasRoom = testbed.rig.endsAtOnce > 2
            var guests: [SessionProbe] = []
            if hasRoom {
                guests = [try testbed.startSession("Guest")]
                try testbed.connect(guests[0], host)
            }
            let stranger = try testbed.startTransport(raw: true)
            var random = SeededGenerator(seed: testbed.rig.seed)
            for length in [8, 9, 100, 4_096, 200_000] {
                let dial = try stranger.dial(Testbed.address(in: host.listening))
                try testbed.wait("the stranger's pipe") { stranger.dialledPipe(dial) != nil }
                let garbage = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
                try stranger.dialledPipe(dial)?.send(garbage)
                try testbed.wait("\(length) bytes of garbage close the pipe") {
                    stranger.dialledPipe(dial)?.isOver == true
                }
                try stranger.dialledPipe(dial)?.close(.now)
            }
            try testbed.waitForLinks(guests.count, at: host)
            if !hasRoom {
                try stranger.shutdown()
                guests = [try testbed.startSession("Guest")]
                try testbed.connect(guests[0], host)
            }
            let guest = guests[0]
            try MessageTransfer(testbed, from: guest, to: host, lengths: lengths).finish()
            try testbed.expect(host.peer(guest.id) != nil, "the guest is unknown")
            let known = Set(
                host.events.compactMap { event -> PeerID? in
                    event.stateChange?.peer.id
                })
            try testbed.expect(known == [guest.id], "a stranger became a peer")
        },
        ConformanceCheck(
            "cut-greeting", "a valid handshake that ends early leaves nothing behind, wherever it ends",
            needs: ConformanceNeeds(ends: 3)
        ) { testbed in
            // Long enough for a complete handshake, on a busy machine too.
            let host = try testbed.startSession("Host") { $0.timings.handshake = .seconds(3) }
            let flight = try testbed.recordHandshake(to: host)
            try testbed.expect(flight.count > 16, "a handshake of \(flight.count) bytes")
            let stranger = try testbed.startTransport(raw: true)
            let before = host.events.count
            for length in [1, 7, 8, 9, 12, flight.count / 2, flight.count - 1] {
                for isClosed in [true, false] {
                    let dial = try stranger.dial(Testbed.address(in: host.listening))
                    try testbed.wait("the stranger's pipe") { stranger.dialledPipe(dial) != nil }
                    try stranger.dialledPipe(dial)?.send(Array(flight.prefix(length)))
                    if isClosed { try stranger.dialledPipe(dial)?.close(.afterWriting) }
                }
            }
            try testbed.waitForLinks(0, at: host)
            try testbed.expect(host.invitations.count <= 1, "half a handshake became an invitation")
            try testbed.expect(
                !host.events.dropFirst(before).contains {
                    $0.stateChange?.peer.state == .connected
                }, "half a handshake became a conversation")
            try stranger.shutdown()
            try testbed.connect(testbed.startSession("Guest"), host)
        },
    ]
}

extension Testbed {
    /// Lets a session connect to `host` through a relay, and returns the bytes that it sent until it was
    /// connected.
    fileprivate func recordHandshake(to host: SessionProbe) throws -> [UInt8] {
        let relay = try startListener(raw: true)
        let caller = try startSession("Caller")
        let call = call(caller, at: try Testbed.address(in: relay.listening))
        try wait("the call reaches the relay") { relay.acceptedPipes.count == 1 }
        let onward = try relay.dial(Testbed.address(in: host.listening))
        try wait("the relay reaches the host") { relay.dialledPipe(onward) != nil }
        guard let there = relay.dialledPipe(onward) else { return [] }
        let here = relay.acceptedPipes[0]
        try here.relay(to: there)
        try there.relay(to: here)
        try call.value()
        try waitFor(.connected, caller, host)
        let flight = here.bytes
        try kill(caller)
        try wait("the relay is notified of the end") { here.isOver }
        try here.close(.now)
        try there.close(.now)
        try relay.shutdown()
        try wait("the host forgets the call", at: host) { $0.inspection.links == 0 }
        return flight
    }
}
