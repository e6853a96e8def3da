import NighCore

// How sessions find each other, call each other by address, and come back.

extension SessionConformance {
    static let meetingChecks = [
        ConformanceCheck(
            "found-and-lost",
            "a session that appears, disappears and returns under another name is seen as one peer"
        ) { testbed in
            let seeker = try testbed.startSession("Seeker", role: .client)
            let host = try testbed.startSession("Host", identity: 7)
            try testbed.wait("the host is found") { seeker.state(of: host.id) == .available }
            try testbed.expect(
                seeker.peer(host.id)?.name.description == "Host",
                "it is seen as \(String(describing: seeker.peer(host.id)?.name))")
            try testbed.expect(seeker.peer(host.id)?.routes.isEmpty == false, "no route leads to it")
            try testbed.close(host)
            try testbed.wait("its disappearance is reported") { seeker.state(of: host.id) == .unavailable }
            let renamed = try testbed.startSession("Renamed", identity: 7)
            try testbed.expect(renamed.id == host.id, "one identity has two PeerIDs")
            try testbed.wait("it is found again, under its new name") {
                seeker.state(of: host.id) == .available
                    && seeker.peer(host.id)?.name.description == "Renamed"
            }
        },
        ConformanceCheck(
            "found-both-ways",
            "two sessions that advertise and browse find each other, and can invite each other"
        ) { testbed in
            let first = try testbed.startSession("First", role: .peer)
            let second = try testbed.startSession("Second", role: .peer)
            try testbed.waitFor(.available, first, second)
            try testbed.invite(second, first.id).value()
            try testbed.waitFor(.connected, first, second)
            try testbed.expect(
                first.peer(second.id)?.transport != nil, "no transport carries the conversation")
        },
        ConformanceCheck(
            "info-changes", "the info of a session can change while it is seen, and while it is connected"
        ) { testbed in
            let seeker = try testbed.startSession("Seeker", role: .client)
            let host = try testbed.startSession("Host")
            try testbed.wait("the host is found") { seeker.state(of: host.id) == .available }
            for step in 0..<2 {
                if step == 1 {
                    try testbed.invite(seeker, host.id).value()
                    try testbed.waitFor(.connected, seeker, host)
                }
                let info = try DiscoveryInfo(["step": "\(step)"])
                host.session.update(info: info)
                try testbed.wait("the change is reported") { seeker.peer(host.id)?.discoveryInfo == info }
            }
            try testbed.expect(seeker.state(of: host.id) == .connected, "the change ended the conversation")
        },
        ConformanceCheck(
            "call-by-address",
            "an address is enough to invite a session, without discovery, and can be used again"
        ) { testbed in
            let host = try testbed.startSession("Host")
            let caller = try testbed.startSession("Caller")
            for _ in 0..<3 {
                let found = try testbed.call(caller, host).value()
                try testbed.expect(found == host.id, "a peer answered that does not listen there")
                try testbed.waitFor(.connected, caller, host)
                try testbed.disconnect(caller, from: host.id).value()
                try testbed.wait("both have left") {
                    caller.state(of: host.id) == .unavailable && host.state(of: caller.id) == .unavailable
                }
            }
        },
        ConformanceCheck(
            "call-nobody", "an invitation to an address where nobody listens or answers fails with that cause"
        ) { testbed in
            if let silent = testbed.rig.silentAddress {
                let alone = try testbed.startSession("Alone")
                let timedOut = try testbed.call(alone, at: silent, timeout: .milliseconds(300)).error()
                try testbed.expect(timedOut.cause == .timedOut, "unanswered, it failed with: \(timedOut)")
                try testbed.waitForLinks(0, at: alone)
                try testbed.kill(alone)
            }
            // On a cable, nobody can refuse a call before another session is there.
            _ = try testbed.startSession("Bystander", role: .client)
            let caller = try testbed.startSession("Caller")
            let refused = try testbed.call(caller, at: testbed.rig.refusedAddress).error()
            try testbed.expect(
                [.refused, .unreachable].contains(refused.cause), "refused, it failed with: \(refused)")
            try testbed.waitForLinks(0, at: caller)
        },
        ConformanceCheck(
            "call-oneself", "a session that dials itself detects it, and keeps no peer and no link"
        ) { testbed in
            let caller = try testbed.startSession("Caller")
            let other = try testbed.startSession("Other")
            guard testbed.rig.endsAtOnce > 2 || caller.listening.first != other.listening.first else {
                throw Testbed.Skip(reason: "an address always leads to the other end of the wire")
            }
            let error = try testbed.call(caller, caller).error()
            try testbed.expect(error.cause == .selfDial, "it failed with: \(error)")
            try testbed.waitForLinks(0, at: caller)
            try testbed.expect(caller.states(of: caller.id).isEmpty, "the session became its own peer")
            try testbed.connect(other, caller)
        },
        ConformanceCheck(
            "restart", "a restarted peer stays one peer; its former conversation ends, with the reason"
        ) { testbed in
            let host = try testbed.startSession("Host")
            var silent: SessionProbe?
            for run in 0..<6 {
                let guest = try testbed.startSession("Guest", identity: 7)
                let before = host.endings(with: guest.id).count
                try testbed.connect(guest, host)
                try guest.session.trySend(Array("life \(run)".utf8), to: host.id)
                try testbed.wait("the message of run \(run) arrives") { host.texts.last == "life \(run)" }
                try testbed.waitForLinks(1, at: host)
                let endings = host.endings(with: guest.id)
                try testbed.expect(
                    endings.dropFirst(before).allSatisfy { $0 == .restarted } && endings.count == run,
                    "in run \(run) the guest's earlier conversations had ended with \(endings)")
                try testbed.expect(
                    host.session.connectedPeerIDs == [guest.id], "the guest is not the only connected peer")
                if let gone = silent { try testbed.kill(gone) }
                silent = nil
                // Every second life disappears without a sign: its pipes stay open and carry nothing. It keeps its end
                // of the wire.
                if run % 2 == 0, testbed.rig.endsAtOnce > 2 {
                    try testbed.controlFaults(of: guest) { $0.block() }
                    guest.session.stopAdvertising()
                    silent = guest
                } else {
                    try testbed.kill(guest)
                }
            }
        },
        ConformanceCheck(
            "same-identity", "two programs with one identity get an error that says so"
        ) { testbed in
            let host = try testbed.startSession("Host", identity: 7)
            let copy = try testbed.startSession("Copy", identity: 7)
            let error = try testbed.call(copy, host).error()
            try testbed.expect(error.cause == .sameIdentity, "it failed with: \(error)")
        },
    ]
}
