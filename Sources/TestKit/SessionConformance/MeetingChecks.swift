import NighCore

// How sessions find each other, call each other by address, and come back.

extension SessionConformance {
    static let meetingChecks = [
        ConformanceCheck(
            "found-and-lost",
            "who browses is told of a session that comes, goes and comes back under another name, as one peer"
        ) { bench in
            let seeker = try bench.join("Seeker", role: .client)
            let host = try bench.join("Host", identity: 7)
            try bench.wait("the host is found") { seeker.state(of: host.id) == .available }
            try bench.expect(
                seeker.peer(host.id)?.name.description == "Host",
                "it is seen as \(String(describing: seeker.peer(host.id)?.name))")
            try bench.expect(seeker.peer(host.id)?.routes.isEmpty == false, "no route leads to it")
            try bench.close(host)
            try bench.wait("its going is told") { seeker.state(of: host.id) == .unavailable }
            let renamed = try bench.join("Renamed", identity: 7)
            try bench.expect(renamed.id == host.id, "one identity is two peers")
            try bench.wait("it is found again, under its new name") {
                seeker.state(of: host.id) == .available
                    && seeker.peer(host.id)?.name.description == "Renamed"
            }
        },
        ConformanceCheck(
            "found-both-ways", "two that advertise and browse find each other, and can invite each other"
        ) { bench in
            let first = try bench.join("First", role: .peer)
            let second = try bench.join("Second", role: .peer)
            try bench.waitFor(.available, first, second)
            try bench.invite(second, first.id).value()
            try bench.waitFor(.connected, first, second)
            try bench.expect(first.peer(second.id)?.transport != nil, "no transport carries the conversation")
        },
        ConformanceCheck(
            "info-changes", "what a session advertises can change while it is seen, and while it is connected"
        ) { bench in
            let seeker = try bench.join("Seeker", role: .client)
            let host = try bench.join("Host")
            try bench.wait("the host is found") { seeker.state(of: host.id) == .available }
            for step in 0..<2 {
                if step == 1 {
                    try bench.invite(seeker, host.id).value()
                    try bench.waitFor(.connected, seeker, host)
                }
                let info = try DiscoveryInfo(["step": "\(step)"])
                host.session.update(info: info)
                try bench.wait("the change is told") { seeker.peer(host.id)?.info == info }
            }
            try bench.expect(seeker.state(of: host.id) == .connected, "the change ended the conversation")
        },
        ConformanceCheck(
            "call-by-address",
            "an address is enough: nobody has to look for anybody, and a call is repeatable"
        ) { bench in
            let host = try bench.join("Host")
            let caller = try bench.join("Caller")
            for _ in 0..<3 {
                let found = try bench.call(caller, host).value()
                try bench.expect(found == host.id, "another peer answered than listens there")
                try bench.waitFor(.connected, caller, host)
                try bench.leave(caller, host.id).value()
                try bench.wait("both have left") {
                    caller.state(of: host.id) == .unavailable && host.state(of: caller.id) == .unavailable
                }
            }
        },
        ConformanceCheck(
            "call-nobody", "a call to where nobody listens, or nobody answers, fails with its cause"
        ) { bench in
            if let silent = bench.rig.silentAddress {
                let alone = try bench.join("Alone")
                let timedOut = try bench.call(alone, at: silent, timeout: .milliseconds(300)).error()
                try bench.expect(timedOut.cause == .timedOut, "unanswered, it failed with: \(timedOut)")
                try bench.waitForLinks(0, at: alone)
                try bench.kill(alone)
            }
            // On a cable, nobody can refuse a call before another session is there.
            _ = try bench.join("Bystander", role: .client)
            let caller = try bench.join("Caller")
            let refused = try bench.call(caller, at: bench.rig.refusedAddress).error()
            try bench.expect(
                [.refused, .unreachable].contains(refused.cause), "refused, it failed with: \(refused)")
            try bench.waitForLinks(0, at: caller)
        },
        ConformanceCheck(
            "call-oneself", "a call to oneself is found out, and leaves no peer and no link behind"
        ) { bench in
            let caller = try bench.join("Caller")
            let other = try bench.join("Other")
            guard bench.rig.endsAtOnce > 2 || caller.listening.first != other.listening.first else {
                throw Bench.Skip(words: "an address leads to the other end of the wire, never to oneself")
            }
            let error = try bench.call(caller, caller).error()
            try bench.expect(error.cause == .selfDial, "it failed with: \(error)")
            try bench.waitForLinks(0, at: caller)
            try bench.expect(caller.moves(of: caller.id).isEmpty, "it became a peer of its own")
            try bench.connect(other, caller)
        },
        ConformanceCheck(
            "restart", "a peer that is started anew is one peer; its former conversation ends, telling why"
        ) { bench in
            let host = try bench.join("Host")
            var silent: SessionProbe?
            for life in 0..<6 {
                let guest = try bench.join("Guest", identity: 7)
                let before = host.endings(with: guest.id).count
                try bench.connect(guest, host)
                try guest.session.trySend(Array("life \(life)".utf8), to: host.id)
                try bench.wait("the word of life \(life) arrives") { host.texts.last == "life \(life)" }
                try bench.waitForLinks(1, at: host)
                let endings = host.endings(with: guest.id)
                try bench.expect(
                    endings.dropFirst(before).allSatisfy { $0 == .restarted } && endings.count == life,
                    "by its life \(life) the guest's conversations had ended \(endings)")
                try bench.expect(host.session.connectedPeers == [guest.id], "the guest is not one peer")
                if let gone = silent { try bench.kill(gone) }
                silent = nil
                // Every second life disappears without a sign: its pipes stay open and carry nothing. It keeps its end
                // of the wire.
                if life % 2 == 0, bench.rig.endsAtOnce > 2 {
                    try bench.disturb(guest) { $0.block() }
                    guest.session.setAdvertising(false)
                    silent = guest
                } else {
                    try bench.kill(guest)
                }
            }
        },
        ConformanceCheck(
            "same-identity", "two programs with one identity are told so when they meet"
        ) { bench in
            let host = try bench.join("Host", identity: 7)
            let copy = try bench.join("Copy", identity: 7)
            let error = try bench.call(copy, host).error()
            try bench.expect(error.cause == .sameIdentity, "it failed with: \(error)")
        },
    ]
}
