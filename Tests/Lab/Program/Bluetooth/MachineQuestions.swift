/// Asks questions while the conversation moves between the network and Bluetooth.
enum MachineQuestions {
    /// How many times the network is switched off and on again.
    private static let rounds = 2

    static let all = [
        Scenario(
            "questions-two-ways",
            "a peer asks thousands of questions while the conversation moves between the network and Bluetooth: each is answered once",
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
            puma.sendCommand("ask \(lynx.id) 32")
            for _ in 0..<rounds {
                for (isUp, transport) in [(false, "bluetooth"), (true, "tcp")] {
                    try lab.setNetwork(isUp: isUp)
                    try lab.wait(for: "the conversation to move to \(transport)", within: .seconds(50)) {
                        [puma.view(of: lynx), lynx.view(of: puma)].allSatisfy {
                            $0.transports.last == transport
                        }
                    }
                    // Time for questions on this wire.
                    try lab.pass(.seconds(2))
                }
            }
            puma.stopSending()
            try lab.pass(.seconds(2))
            for peer in [puma, lynx] { peer.sendCommand("statistics") }
            try lab.wait(for: "both to count") {
                puma.statistics["done"] != nil && lynx.statistics["done"] != nil
            }
            let answered = puma.statistics["questionsAnswered"] ?? 0
            let asked = lynx.statistics["questionsOfOthers"] ?? 0
            try lab.check(
                "\(answered) questions were answered, \(asked) were worked on, none failed, none came twice",
                answered > 1_000 && (answered...answered + 32).contains(asked)
                    && puma.statistics["questionsWrong"] == 0 && puma.statistics["questionsFailed"] == 0
                    && lynx.statistics["questionsRepeated"] == 0)
            try lab.check("it was one conversation", Lifelines.isUnbroken(puma, lynx))
        }
    ]
}
