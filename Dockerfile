# ROS 2 with hodyn_ros built by colcon. Its command is the demo, whose figures stay in /out:
#   docker build --tag hodyn_ros . && docker run --rm --volume "$PWD/out:/out" hodyn_ros
# Another ROS 2: --build-arg ROS_DISTRO=jazzy
ARG ROS_DISTRO=kilted
FROM ros:${ROS_DISTRO}-ros-base
ARG ROS_DISTRO
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /ws
COPY . src/hodyn_ros
# What has no rosdep key comes from PyPI (package.xml says which); the system's Python is the one that ROS uses.
# hadolint ignore=DL3008,DL3042
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip \
    && rosdep update --rosdistro "$ROS_DISTRO" \
    && rosdep install --from-paths src --ignore-src --yes --rosdistro "$ROS_DISTRO" \
    && pip install --break-system-packages --requirement <(grep '^llvmlite' src/hodyn_ros/requirements/runtime.txt) \
    && pip install --break-system-packages --requirement src/hodyn_ros/requirements/bags.txt \
    && rm -rf /var/lib/apt/lists/*
RUN source "/opt/ros/$ROS_DISTRO/setup.bash" \
    && colcon build --packages-select hodyn_ros --event-handlers console_direct+ \
    && echo 'source /ws/install/setup.bash' >> /root/.bashrc
CMD ["bash", "-c", "source install/setup.bash && ros2 run hodyn_ros hodyn demo --out /out"]
