@_exported import os

/// Where a program logs.
public struct OSLog: Sendable {
    /// Creates a log that drops all lines.
    public init(subsystem: String, category: String) {}
}

/// How important a line is.
public struct OSLogType: Sendable {
    /// A level.
    public static let debug = OSLogType()
    /// A level.
    public static let info = OSLogType()
    /// A level.
    public static let error = OSLogType()
    /// A level.
    public static let fault = OSLogType()
}

/// Logs nothing.
public func os_log(_ message: StaticString, log: OSLog, type: OSLogType = .info, _ arguments: Any...) {}
