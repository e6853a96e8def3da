@_exported import Foundation

/// This machine.
public struct UIDevice {
    /// This machine.
    public static let current = UIDevice()
    /// Its name.
    public var name: String { Host.current().localizedName ?? "device" }
}
