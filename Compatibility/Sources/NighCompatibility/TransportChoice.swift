import Foundation
import NighLoop

/// The transports of the sessions of both modules with Apple's names.
package enum TransportChoice {
    /// What carries sessions if the program says nothing: what the environment variable `NIGH_TRANSPORTS` names, and
    /// without it everything that this machine has.
    package static var byDefault: String {
        ProcessInfo.processInfo.environment["NIGH_TRANSPORTS"]
            ?? TransportRegistry.standard.reachingOtherPrograms
    }

    /// Makes the transports that a list names, as flags take it. Those of plugins are loaded.
    package static func make(_ list: String) throws(NighError) -> [any Transport] {
        try PluginCatalog().makeAll(list, extending: .standard)
    }
}
