import Foundation
import MultipeerConnectivity
import MultipeerKit

struct Hello: Codable { var text: String }

let name = CommandLine.arguments[1]
let transceiver = MultipeerTransceiver(
    configuration: MultipeerConfiguration(
        serviceType: "MKSVC", peerName: name, defaults: .standard, security: .default, invitation: .automatic)
)
transceiver.receive(Hello.self) { hello, sender in
    print("\(name) got \(hello.text) from \(sender.name)")
    Timer.scheduledTimer(withTimeInterval: 1, repeats: false) { _ in exit(0) }
}
transceiver.resume()
_ = Timer.scheduledTimer(withTimeInterval: 0.3, repeats: true) { _ in
    transceiver.broadcast(Hello(text: "hello"))
}
RunLoop.main.run(until: Date(timeIntervalSinceNow: 20))
exit(1)
