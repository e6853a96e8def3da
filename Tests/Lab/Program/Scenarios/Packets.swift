/// Unreliable messages, and networks that carry no packets.
enum Packets {
    static let all = [
        Scenario(
            "packets-blocked",
            "UDP is dropped, and let through again: values go on within a second, and it is told once"
        ) { lab throws(Failure) in
            let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=off"))
            let lynx = try lab.host("lynx").peer("Lynx", .over("tcp:mdns=off"))
            try lab.wait(for: "Puma to listen") { !puma.listening.isEmpty }
            lynx.sendCommand("call tcp://\(puma.host.address()):\(try puma.port())")
            try lab.connection(of: puma, lynx)
            let (start, elapsed) = (lab.journal.now, lab.elapsed)
            lynx.show(to: puma, every: .milliseconds(20))
            try lab.wait(for: "packets to pass") { lynx.view(of: puma).packets.last == true }

            for way in ["in", "out"] {
                lab.step("UDP is dropped on its way \(way)")
                let rule = "meta l4proto udp drop"
                try way == "in" ? puma.host.filter(in: rule) : puma.host.filter(out: rule)
                try lab.wait(for: "Lynx to be told") { lynx.view(of: puma).packets.last == false }
                let (changes, count) = (lynx.view(of: puma).packets.count, puma.view(of: lynx).values.count)
                try lab.wait(for: "values to go on") {
                    puma.view(of: lynx).values.count > count + 100
                }
                try lab.check("it was told once", lynx.view(of: puma).packets.count == changes)
                try puma.host.filter()
                try lab.wait(for: "packets to pass again") { lynx.view(of: puma).packets.last == true }
            }
            lynx.stopSending()
            let numbers = puma.view(of: lynx).values.map(\.number)
            try lab.check("values come once and in order", numbers == Array(Set(numbers)).sorted())
            let gap = zip(numbers.dropFirst(), numbers).map { $0 - $1 }.max() ?? 0
            let share = (lab.journal.now - start) / (lab.elapsed - elapsed)
            // Fifty a second were sent, and for less than a second they were lost. A session that gets no processor
            // notices later.
            try lab.check(
                "at most 50 in a row were lost: \(gap), at a pace of 1 in \(share)", gap <= 50 || share > 1.5)
            try lab.check("it is one conversation", Lifelines.isUnbroken(lynx, puma) && puma.troubles.isEmpty)
        }
    ]
}
