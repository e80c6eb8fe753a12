// swift-tools-version: 6.0
import PackageDescription

// The Makefile's release optimizes the code of commands and lists for size (Packaging/release.mk). SwiftPM refuses a dependency with
// unsafe flags, so only the Makefile's environment sets them.
let small: [SwiftSetting] =
    Context.environment["FK_SMALL"] == nil ? [] : [.unsafeFlags(["-Osize"], .when(configuration: .release))]

// What FKCore has besides its inner targets. FKEngine has two of the folders beside these: Engine and Configure.
let aboveEngine = [
    "Barrels", "Builder", "Client", "Compatibility", "Control", "FKCore.docc", "Handles", "Messager", "Observation",
    "Programs", "Reading",
    "Downloader.swift", "Exports.swift",
]

let package = Package(
    name: "FKDownloader",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "FKMiddleware", targets: ["FKMiddleware"]),
        .library(name: "FKCore", targets: ["FKCore"]),
        .library(name: "FKManifests", targets: ["FKManifests"]),
        // FKDownloader's own calls.
        .library(name: "FKCompatibility", targets: ["FKCompatibility"]),
        // For who writes a transport, and for middlewares that are programs.
        .library(name: "FKTransport", targets: ["FKTransport"]),
        .library(name: "FKPrograms", targets: ["FKPrograms"]),
        // For tests of applications and of middlewares.
        .library(name: "FKTesting", targets: ["FKTesting"]),
        .executable(name: "fk", targets: ["fk"]),
    ],
    targets: [
        .systemLibrary(
            name: "CLibcurl", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"]), .brew(["curl"])]),
        .systemLibrary(
            name: "CLibcrypto", pkgConfig: "libcrypto",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        .systemLibrary(name: "CSystem"),
        .target(
            name: "FKMiddleware",
            dependencies: ["CSystem", .target(name: "CLibcrypto", condition: .when(platforms: [.linux]))],
            swiftSettings: small),
        // FKCore's inner targets, from the bottom up; the compiler holds the borders.
        .target(
            name: "FKModel", dependencies: ["CSystem", "FKMiddleware"], path: "Sources/FKCore/Model"),
        .target(
            name: "FKTransport",
            dependencies: [
                "CSystem", "FKModel", "FKMiddleware",
                .target(name: "CLibcurl", condition: .when(platforms: [.linux, .macOS])),
            ],
            path: "Sources/FKCore/Transport"),
        .target(
            name: "FKManifests",
            dependencies: ["CSystem", "FKCore", "FKEngine", "FKStore", "FKTransport", "FKModel", "FKMiddleware"],
            path: "Sources/FKCore/Manifests", swiftSettings: small),
        .target(
            name: "FKStore", dependencies: ["CSystem", "FKModel", "FKMiddleware"], path: "Sources/FKCore/Store",
            swiftSettings: small),
        .target(
            name: "FKEngine", dependencies: ["CSystem", "FKStore", "FKTransport", "FKModel", "FKMiddleware"],
            path: "Sources/FKCore", exclude: aboveEngine + ["Model", "Transport", "Manifests", "Store"],
            sources: ["Engine", "Configure"]),
        .target(
            name: "FKCore", dependencies: ["CSystem", "FKEngine", "FKTransport", "FKModel", "FKMiddleware"],
            path: "Sources/FKCore",
            exclude: [
                "Model", "Transport", "Manifests", "Store", "Engine", "Configure", "Programs", "Compatibility",
            ],
            swiftSettings: small),
        .target(
            name: "FKPrograms", dependencies: ["FKCore", "FKEngine", "FKMiddleware"],
            path: "Sources/FKCore/Programs", swiftSettings: small),
        .target(
            name: "FKCompatibility", dependencies: ["CSystem", "FKCore", "FKEngine", "FKMiddleware"],
            path: "Sources/FKCore/Compatibility"),
        .target(name: "FKTesting", dependencies: ["CSystem", "FKCore", "FKEngine", "FKTransport", "FKMiddleware"]),
        .executableTarget(
            name: "fk", dependencies: ["FKWeb", "FKRPC", "FKCore", "FKManifests", "FKEngine", "FKMiddleware"],
            swiftSettings: small),
        .target(
            name: "FKRPC", dependencies: ["FKCore", "FKPrograms", "FKManifests", "FKEngine", "FKMiddleware"],
            swiftSettings: small),
        .target(
            name: "FKWeb", dependencies: ["FKRPC", "FKCore", "FKManifests", "FKEngine", "FKMiddleware"],
            resources: [.embedInCode("Page")], swiftSettings: small),
        // An application that tests kill (Background/SystemModelTests).
        .executableTarget(
            name: "BackgroundApp", dependencies: ["FKCore", "FKEngine", "FKStore", "FKTransport", "FKTesting"],
            path: "Tests/BackgroundApp"),
        .target(
            name: "TestSupport",
            dependencies: [
                "FKCore", "FKCompatibility", "FKPrograms", "FKEngine", "FKTransport", "FKMiddleware", "FKTesting",
            ],
            path: "Tests/TestSupport"),
        .testTarget(name: "FKMiddlewareTests", dependencies: ["FKMiddleware", "TestSupport"]),
        .testTarget(
            name: "FKCoreTests",
            dependencies: [
                "FKCore", "FKEngine", "FKStore", "FKTransport", "FKModel", "FKMiddleware", "TestSupport",
            ]),
        .testTarget(name: "FKManifestsTests", dependencies: ["FKManifests", "FKCore", "FKStore", "TestSupport"]),
        // Sees what an application sees: neither internal nor package declarations.
        .testTarget(
            name: "FKCorePublicTests",
            dependencies: [
                "FKCore", "FKCompatibility", "FKPrograms", "FKTransport", "FKManifests", "FKMiddleware", "FKTesting",
            ],
            packageAccess: false),
        .testTarget(
            name: "FKRPCTests",
            dependencies: ["fk", "FKWeb", "FKRPC", "FKCore", "FKManifests", "FKMiddleware", "TestSupport"]),
        .testTarget(name: "fkTests", dependencies: ["fk", "FKCore", "FKManifests", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
