/// Asks questions and calls actors while the conversation moves between the network and Bluetooth.
enum MachineQuestions {
    /// How many times the network is switched off and on again.
    private static let rounds = Calling.rounds / 2

    static let all = [
        Scenario(
            "questions-two-ways",
            "a peer asks questions and calls an actor while the conversation moves between the network and Bluetooth: each is answered once",
            limit: .seconds(60 + rounds * 60)
        ) { lab throws(Failure) in
            let puma = try lab.machine.peer("Puma", .over(TransportFlags.both(0)))
            let lynx = try lab.machine.peer("Lynx", .over(TransportFlags.both(1)))
            try lab.meet(puma, lynx, findingWithin: .seconds(40))
            try lab.wait(for: "the two to talk over the network", within: .seconds(40)) {
                puma.view(of: lynx).transports.last == "tcp"
            }
            // Each has seen the other's radio, too, before the network goes.
            try lab.wait(for: "both routes", within: .seconds(40)) {
                puma.view(of: lynx).routes.count >= 2 && lynx.view(of: puma).routes.count >= 2
            }
            puma.ask(lynx)
            for _ in 0..<rounds {
                for (isUp, transport) in [(false, "bluetooth"), (true, "tcp")] {
                    try lab.setNetwork(isUp: isUp)
                    try lab.wait(for: "the conversation to move to \(transport)", within: .seconds(120)) {
                        [puma.view(of: lynx), lynx.view(of: puma)].allSatisfy {
                            $0.transports.last == transport
                        }
                    }
                    // Time for questions on this wire.
                    try lab.pass(.seconds(2))
                }
            }
            try Calling.check(lab, puma, lynx)
        }
    ]
}
